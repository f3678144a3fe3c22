//! Locks in a table of SQLite, for processes on one machine that share a file.
//!
//! The schema is `migrations/sqlite/0001_locks.sql`:
//!
//! ```sql
#![doc = include_str!("../../migrations/sqlite/0001_locks.sql")]
//! ```
//!
//! # Whose clock?
//! SQLite has no server, so leases end by the wall clock of the machine. A clock that jumps forward ends leases too early:
//! the work of the holder goes on for at most a third of its lease until a renewal fails, and in that time only the fencing
//! token keeps two holders apart. A clock that jumps back makes a dead holder's lock last longer.

use std::time::Duration;

use seawall_dist::lock::{Acquisition, FencingSource, FencingToken, LockKey, LockStore, OwnerId};
use seawall_dist::{StoreError, StoreFuture};
use sqlx::{SqliteConnection, SqlitePool};

use crate::duration::millis;
use crate::fault::store_error;
use crate::sqlite::begin;

/// How long a lock has to be unused before [`delete_unused`](SqliteLocks::delete_unused) forgets it.
pub const UNUSED_MIN: Duration = Duration::from_secs(24 * 3_600);

/// Whoever waits asks this first, and does not stand in the line of writers.
const IS_HELD: &str = concat!(
    "
SELECT EXISTS (SELECT 1 FROM seawall_locks
                WHERE key = ?1 AND owner <> ?2 AND expires_at > ",
    sqlite_sql!(now),
    ")"
);

const NEXT_FENCE: &str = "UPDATE seawall_lock_fence SET last = last + 1 WHERE id = 1 RETURNING last";

const GRANT: &str = concat!(
    "
INSERT INTO seawall_locks (key, owner, fence, expires_at)
VALUES (?1, ?2, ?3, ",
    sqlite_sql!(now),
    " + ?4)
ON CONFLICT (key) DO UPDATE SET owner = ?2, fence = ?3, expires_at = excluded.expires_at"
);

const RENEW: &str = concat!(
    "
UPDATE seawall_locks SET expires_at = ",
    sqlite_sql!(now),
    " + ?3
 WHERE key = ?1 AND owner = ?2 AND expires_at > ",
    sqlite_sql!(now)
);

const RELEASE: &str = concat!(
    "
UPDATE seawall_locks SET owner = NULL, expires_at = ",
    sqlite_sql!(now),
    "
 WHERE key = ?1 AND owner = ?2"
);

const DELETE_UNUSED: &str = concat!(
    "
DELETE FROM seawall_locks WHERE expires_at < ",
    sqlite_sql!(now),
    " - ?1"
);

/// Locks in a table of SQLite. Every grant is on disk before it counts, if the pool is one of
/// [`sqlite::open`](super::open).
///
/// It is also a [`FencingSource`] for locks that are kept elsewhere.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::{path::Path, sync::Arc};
/// use seawall_dist::lock::Locks;
/// use seawall_sql::sqlite::{self, lock::SqliteLocks};
///
/// let pool = sqlite::open(Path::new("orders.db")).await?;
/// sqlite::migrate(&pool).await?;
/// let locks = Locks::new(Arc::new(SqliteLocks::new(pool)));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteLocks {
    pool: SqlitePool,
}

impl SqliteLocks {
    /// Locks in the database of this pool, which has to have the schema.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        SqliteLocks { pool }
    }

    /// Deletes the rows of locks that nobody has used for a day, and answers how many there were. Call it once a day: it
    /// reads the whole table, because an index on the time would cost every renewal.
    pub async fn delete_unused(&self) -> Result<u64, StoreError> {
        let query = sqlx::query(DELETE_UNUSED).bind(millis(UNUSED_MIN));
        let result = query.execute(&self.pool).await.map_err(store_error("deleting unused locks"))?;
        Ok(result.rows_affected())
    }

    /// Takes the lock, or answers `None` if somebody else has it.
    async fn take(&self, key: &str, owner: &str, lease: Duration) -> Result<Option<i64>, sqlx::Error> {
        let is_held = || sqlx::query_scalar::<_, bool>(IS_HELD).bind(key).bind(owner);
        if is_held().fetch_one(&self.pool).await? {
            return Ok(None);
        }
        let mut transaction = begin(&self.pool).await?;
        if is_held().fetch_one(&mut *transaction).await? {
            return Ok(None);
        }
        let fence = next_fence(&mut transaction).await?;
        let grant = sqlx::query(GRANT).bind(key).bind(owner).bind(fence).bind(millis(lease));
        grant.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Some(fence))
    }
}

impl LockStore for SqliteLocks {
    fn acquire<'a>(
        &'a self,
        key: &'a LockKey,
        owner: &'a OwnerId,
        lease: Duration,
    ) -> StoreFuture<'a, Acquisition> {
        Box::pin(async move {
            let fence = self.take(key.as_str(), owner.as_str(), lease).await;
            let fence = fence.map_err(store_error("taking a lock"))?;
            Ok(fence.map_or(Acquisition::Held, |fence| Acquisition::Granted(FencingToken::new(fence))))
        })
    }

    fn renew<'a>(&'a self, key: &'a LockKey, owner: &'a OwnerId, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let query = sqlx::query(RENEW).bind(key.as_str()).bind(owner.as_str()).bind(millis(lease));
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

impl FencingSource for SqliteLocks {
    fn next_token<'a>(&'a self, _key: &'a LockKey) -> StoreFuture<'a, FencingToken> {
        Box::pin(async move {
            let failed = store_error("drawing a fencing token");
            // To its last row: `fetch_one` would not hear that the commit failed, which comes after the row.
            let fences: Vec<i64> =
                sqlx::query_scalar(NEXT_FENCE).fetch_all(&self.pool).await.map_err(failed)?;
            let fence = fences.first().ok_or_else(|| failed(sqlx::Error::RowNotFound))?;
            Ok(FencingToken::new(*fence))
        })
    }
}

/// One counter for all locks: a row that was deleted takes no token with it.
async fn next_fence(transaction: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(NEXT_FENCE).fetch_one(transaction).await
}
