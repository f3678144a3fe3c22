//! Taking a key.

use seawall::Fault;
use seawall_dist::StoreError;
use seawall_dist::idempotency::{ClaimAnswer, ClaimRequest, Fingerprint, IdempotencyKey};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{PgExecutor, Postgres, Row};

use crate::fault::store_error;
use crate::idempotency::{KeyRow, millis};

/// How often a claim looks again when the key changed between its look and its write. Each round means that another caller
/// got on.
const ROUNDS_MAX: u32 = 10;

pub(super) async fn claim(
    mut connection: PoolConnection<Postgres>,
    key: &IdempotencyKey,
    request: ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let failed = store_error("claiming an idempotency key");
    for _ in 0..ROUNDS_MAX {
        // Repetitions are answered by a read: they come in floods, and a write each would cost the disk.
        let row = look(&mut *connection, key, &request.fingerprint, request.holder).await.map_err(failed)?;
        if let Some(answer) = row.and_then(KeyRow::answer) {
            return Ok(answer);
        }
        if let Some(token) = take(&mut connection, key, &request).await.map_err(failed)? {
            return Ok(ClaimAnswer::Acquired { fencing_token: token.cast_unsigned() });
        }
    }
    Err(StoreError::new(
        "claiming an idempotency key",
        Fault::protocol(),
        "the key changed ten times meanwhile",
    ))
}

/// Reads the row of a key.
pub(super) async fn look(
    database: impl PgExecutor<'_>,
    key: &IdempotencyKey,
    fingerprint: &Fingerprint,
    holder: u64,
) -> Result<Option<KeyRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT state, fingerprint = $3, holder = $4, fencing_token, result,
                CEIL(EXTRACT(EPOCH FROM lease_until - clock_timestamp()) * 1000)::BIGINT,
                expires_at <= clock_timestamp()
         FROM seawall_idempotency_keys WHERE scope = $1 AND key = $2",
    )
    .bind(key.scope())
    .bind(key.key())
    .bind(&fingerprint[..])
    .bind(holder.cast_signed())
    .fetch_optional(database)
    .await?;
    row.map(|row| {
        Ok(KeyRow {
            state: row.try_get(0)?,
            same_fingerprint: row.try_get(1)?,
            same_holder: row.try_get(2)?,
            fencing_token: row.try_get(3)?,
            result: row.try_get(4)?,
            lease_left: row.try_get(5)?,
            expired: row.try_get(6)?,
        })
    })
    .transpose()
}

/// Writes the record of an execution that begins, if the key is free. Returns its fencing token.
async fn take(
    connection: &mut PgConnection,
    key: &IdempotencyKey,
    request: &ClaimRequest,
) -> Result<Option<i64>, sqlx::Error> {
    // The token is drawn again in the update, when the row is locked: it is larger than the one that it replaces.
    sqlx::query_scalar(
        "INSERT INTO seawall_idempotency_keys AS k
             (scope, key, fingerprint, state, holder, fencing_token, lease_until, expires_at)
         VALUES ($1, $2, $3, 0, $4, nextval('seawall_idempotency_fencing_token'),
                 clock_timestamp() + $5 * interval '1 millisecond',
                 clock_timestamp() + $6 * interval '1 millisecond')
         ON CONFLICT (scope, key) DO UPDATE
         SET fingerprint = excluded.fingerprint, state = 0, holder = excluded.holder, result = NULL,
             fencing_token = nextval('seawall_idempotency_fencing_token'),
             lease_until = clock_timestamp() + $5 * interval '1 millisecond',
             expires_at = clock_timestamp() + $6 * interval '1 millisecond'
         WHERE k.expires_at <= clock_timestamp()
            OR (k.state = 0 AND k.lease_until <= clock_timestamp() AND k.fingerprint = excluded.fingerprint)
         RETURNING fencing_token",
    )
    .bind(key.scope())
    .bind(key.key())
    .bind(&request.fingerprint[..])
    .bind(request.holder.cast_signed())
    .bind(millis(request.lease))
    .bind(millis(request.ttl.max(request.lease)))
    .fetch_optional(connection)
    .await
}
