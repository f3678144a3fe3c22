//! Locks in a table of PostgreSQL.
//!
//! The schema is `migrations/postgres/0001_locks.sql`:
//!
//! ```sql
#![doc = include_str!("../../migrations/postgres/0001_locks.sql")]
//! ```
//!
//! # Why not advisory locks?
//! An advisory lock belongs to a connection: the lock is gone with the connection while its holder still works, it needs a
//! connection of its own for as long as it is held, and it has no fencing token. A row with a lease has none of these faults.
//!
//! # Why is the row kept when the lock is given back?
//! Its token is. Two statements that take the same lock one after another meet in this row, and the second counts on from
//! the token of the first. [`delete_unused`](PostgresLocks::delete_unused) deletes rows of locks that nobody has used for a
//! day; the sequence keeps the next token above theirs.

use std::time::Duration;

use seawall_dist::StoreError;
use seawall_dist::StoreFuture;
use seawall_dist::lock::{Acquisition, FencingSource, FencingToken, LockKey, LockStore, OwnerId};
use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;

use crate::duration::millis;
use crate::fault::store_error;

/// How long a lock has to be unused before [`delete_unused`](PostgresLocks::delete_unused) forgets it: longer than any
/// statement takes.
pub const UNUSED_MIN: Duration = Duration::from_secs(24 * 3_600);

/// The first condition keeps those that wait from writing to the row; the second one decides.
const ACQUIRE: &str = "
INSERT INTO seawall_locks AS held (key, owner, fence, expires_at)
SELECT $1, $2, nextval('seawall_lock_fence'), clock_timestamp() + $3
 WHERE NOT EXISTS (
       SELECT FROM seawall_locks AS other
        WHERE other.key = $1 AND other.owner <> $2 AND other.expires_at > clock_timestamp())
ON CONFLICT (key) DO UPDATE
   SET owner = $2,
       fence = greatest(held.fence + 1, nextval('seawall_lock_fence')),
       expires_at = clock_timestamp() + $3
 WHERE held.owner IS NULL OR held.owner = $2 OR held.expires_at <= clock_timestamp()
RETURNING fence";

const RENEW: &str = "
UPDATE seawall_locks SET expires_at = clock_timestamp() + $3
 WHERE key = $1 AND owner = $2 AND expires_at > clock_timestamp()";

const RELEASE: &str = "
UPDATE seawall_locks SET owner = NULL, expires_at = clock_timestamp()
 WHERE key = $1 AND owner = $2";

/// The row is written so that the commit waits until the token is on disk.
const NEXT_TOKEN: &str = "
INSERT INTO seawall_locks AS held (key, owner, fence, expires_at)
VALUES ($1, NULL, nextval('seawall_lock_fence'), clock_timestamp())
ON CONFLICT (key) DO UPDATE
   SET fence = greatest(held.fence + 1, nextval('seawall_lock_fence')),
       expires_at = greatest(held.expires_at, clock_timestamp())
RETURNING fence";

const DELETE_UNUSED: &str = "DELETE FROM seawall_locks WHERE expires_at < clock_timestamp() - $1";

/// Locks in a table of PostgreSQL. Leases end by the database's clock, and every grant is on disk before it counts.
///
/// It is also a [`FencingSource`] for locks that are kept elsewhere.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_dist::lock::Locks;
/// use seawall_sql::postgres::{self, lock::PostgresLocks};
///
/// let pool = sqlx::PgPool::connect("postgres://localhost/orders").await?;
/// postgres::migrate(&pool).await?;
/// let locks = Locks::new(Arc::new(PostgresLocks::new(pool)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresLocks {
    pool: PgPool,
}

impl PostgresLocks {
    /// Locks in the database of this pool, which has to have the schema.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        PostgresLocks { pool }
    }

    /// Deletes the rows of locks that nobody has used for a day, and answers how many there were. Call it once a day: it
    /// reads the whole table, because an index on the time would cost every renewal.
    pub async fn delete_unused(&self) -> Result<u64, StoreError> {
        let failed = store_error("deleting unused locks");
        let unused = interval(UNUSED_MIN);
        let result = sqlx::query(DELETE_UNUSED).bind(unused).execute(&self.pool).await.map_err(failed)?;
        Ok(result.rows_affected())
    }
}

impl LockStore for PostgresLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        Box::pin(async move {
            let query = sqlx::query_scalar::<_, i64>(ACQUIRE).bind(key.as_str()).bind(owner.as_str());
            let token = query.bind(interval(lease)).fetch_optional(&self.pool).await;
            let token = token.map_err(store_error("taking a lock"))?;
            Ok(token.map_or(Acquisition::Held, |token| Acquisition::Granted(FencingToken::new(token))))
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let query = sqlx::query(RENEW).bind(key.as_str()).bind(owner.as_str()).bind(interval(lease));
            let result = query.execute(&self.pool).await.map_err(store_error("renewing a lock"))?;
            Ok(result.rows_affected() > 0)
        })
    }

    fn release<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let query = sqlx::query(RELEASE).bind(key.as_str()).bind(owner.as_str());
            let result = query.execute(&self.pool).await.map_err(store_error("giving a lock back"))?;
            Ok(result.rows_affected() > 0)
        })
    }
}

impl FencingSource for PostgresLocks {
    fn next_token<'a>(&'a self, key: &'a LockKey) -> StoreFuture<'a, FencingToken> {
        Box::pin(async move {
            let query = sqlx::query_scalar::<_, i64>(NEXT_TOKEN).bind(key.as_str());
            let token = query.fetch_one(&self.pool).await.map_err(store_error("drawing a fencing token"))?;
            Ok(FencingToken::new(token))
        })
    }
}

fn interval(duration: Duration) -> PgInterval {
    PgInterval { months: 0, days: 0, microseconds: millis(duration) * 1_000 }
}
