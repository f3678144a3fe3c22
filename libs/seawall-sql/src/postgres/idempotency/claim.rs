//! Taking a key.

use seawall::Fault;
use seawall_dist::StoreError;
use seawall_dist::idempotency::{ClaimAnswer, ClaimRequest, IdempotencyKey};
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};

use super::look;
use crate::fault::store_error;
use crate::idempotency::{KeyRow, millis};

/// How often a claim looks again when the key changed between its look and its write. Each round means that another caller
/// got on.
const ROUNDS_MAX: u32 = 10;

pub(super) async fn claim(
    _: &PgPool,
    mut connection: PoolConnection<Postgres>,
    key: &IdempotencyKey,
    request: ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let failed = store_error("claiming an idempotency key");
    for _ in 0..ROUNDS_MAX {
        // Repetitions are answered by a read: they come in floods, and a write each would cost the disk.
        let row = look(&mut connection, key, &request.fingerprint, request.holder).await.map_err(failed)?;
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
