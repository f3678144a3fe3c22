//! Work and its record in one transaction.

use seawall_dist::idempotency::{
    Fingerprint, IdempotencyKey, KEPT, OnceError, OnceOutcome, RESULT_BYTES_MAX,
};
use sqlx::postgres::PgConnection;
use sqlx::{Acquire, Postgres, Transaction};

use super::look;
use crate::fault::store_error;
use crate::idempotency::{IN_FLIGHT_PAUSE, KeyRow, TransactionWork, millis, replay};

/// Runs the work in the caller's transaction, once per key. Its record is part of the same transaction: after the commit both
/// are there, and after a rollback or a crash neither is.
///
/// While another transaction works under the key, this call does not wait: it returns [`OnceError::InFlight`]. Work that fails
/// is undone by a savepoint, and the transaction can go on. Results above [`RESULT_BYTES_MAX`] are a failure of the same kind.
pub async fn once_in<E: Send>(
    transaction: &mut PgConnection,
    key: &IdempotencyKey,
    fingerprint: Fingerprint,
    work: impl for<'c> FnOnce(&'c mut PgConnection) -> TransactionWork<'c, E> + Send,
) -> Result<OnceOutcome, OnceError<E>> {
    let failed = store_error("claiming an idempotency key");
    if !lock(transaction, key).await.map_err(failed).map_err(OnceError::not_started)? {
        return Err(OnceError::in_flight(IN_FLIGHT_PAUSE));
    }
    let row =
        look(transaction, key, &fingerprint, 0).await.map_err(failed).map_err(OnceError::not_started)?;
    match row.and_then(KeyRow::answer) {
        None => {}
        Some(answer) => return replay(answer),
    }
    // A savepoint, which a drop rolls back.
    let mut savepoint = transaction.begin().await.map_err(failed).map_err(OnceError::not_started)?;
    let bytes = work(&mut savepoint).await.map_err(|error| OnceError::Failed { error, recorded: true })?;
    if bytes.len() > RESULT_BYTES_MAX {
        return Err(OnceError::TooLarge { bytes, limit: RESULT_BYTES_MAX });
    }
    record(savepoint, key, fingerprint, bytes).await
}

/// Whether no other transaction works under the key. The lock ends with the transaction. Two keys whose hashes are equal
/// exclude each other for that long, which is harmless.
async fn lock(connection: &mut PgConnection, key: &IdempotencyKey) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_xact_lock(hashtextextended($1, hashtextextended($2, 17)))")
        .bind(key.scope())
        .bind(key.key())
        .fetch_one(connection)
        .await
}

async fn record<E>(
    mut savepoint: Transaction<'_, Postgres>,
    key: &IdempotencyKey,
    fingerprint: Fingerprint,
    bytes: Vec<u8>,
) -> Result<OnceOutcome, OnceError<E>> {
    let failed = store_error("storing a result");
    let refused = |error: sqlx::Error| OnceError::not_started(failed(error));
    let written = sqlx::query(
        "INSERT INTO seawall_idempotency_keys AS k
             (scope, key, fingerprint, state, holder, fencing_token, result, lease_until, expires_at)
         VALUES ($1, $2, $3, 1, 0, nextval('seawall_idempotency_fencing_token'), $4, clock_timestamp(),
                 clock_timestamp() + $5 * interval '1 millisecond')
         ON CONFLICT (scope, key) DO UPDATE
         SET fingerprint = excluded.fingerprint, state = 1, holder = 0, result = excluded.result,
             fencing_token = nextval('seawall_idempotency_fencing_token'),
             lease_until = excluded.lease_until, expires_at = excluded.expires_at
         WHERE k.expires_at <= clock_timestamp()
            OR (k.state = 0 AND k.lease_until <= clock_timestamp() AND k.fingerprint = excluded.fingerprint)",
    )
    .bind(key.scope())
    .bind(key.key())
    .bind(&fingerprint[..])
    .bind(&bytes)
    .bind(millis(KEPT))
    .execute(&mut *savepoint)
    .await
    .map_err(refused)?;
    if written.rows_affected() == 0 {
        // An executor outside of a transaction took the key meanwhile. The work is undone with the savepoint.
        savepoint.rollback().await.map_err(refused)?;
        return Err(OnceError::in_flight(IN_FLIGHT_PAUSE));
    }
    savepoint.commit().await.map_err(refused)?;
    Ok(OnceOutcome::ran(bytes))
}
