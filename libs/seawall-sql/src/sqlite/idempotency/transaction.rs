//! Work and its record in one transaction.

use seawall_dist::idempotency::{
    Fingerprint, IdempotencyKey, KEPT, OnceError, OnceOutcome, RESULT_BYTES_MAX,
};
use sqlx::Acquire;
use sqlx::sqlite::SqliteConnection;

use super::claim::next_token;
use super::look;
use crate::fault::store_error;
use crate::idempotency::{KeyRow, TransactionWork, millis, replay};

/// Runs the work in the caller's transaction, once per key. Its record is part of the same transaction: after the commit both
/// are there, and after a rollback or a crash neither is.
///
/// Begin the transaction with `BEGIN IMMEDIATE` (`pool.begin_with`): SQLite has one writer, and so a second transaction waits
/// at its beginning until the first one has ended. Work that fails is undone by a savepoint, and the transaction can go on.
/// Results above [`RESULT_BYTES_MAX`] are a failure of the same kind.
pub async fn once_in<E: Send>(
    transaction: &mut SqliteConnection,
    key: &IdempotencyKey,
    fingerprint: Fingerprint,
    work: impl for<'c> FnOnce(&'c mut SqliteConnection) -> TransactionWork<'c, E> + Send,
) -> Result<OnceOutcome, OnceError<E>> {
    let failed = store_error("claiming an idempotency key");
    let refused = |error: sqlx::Error| OnceError::not_started(failed(error));
    let row = look(transaction, key, &fingerprint, 0).await.map_err(refused)?;
    if let Some(answer) = row.and_then(KeyRow::answer) {
        return replay(answer);
    }
    // A savepoint, which a drop rolls back.
    let mut savepoint = transaction.begin().await.map_err(refused)?;
    let bytes = work(&mut savepoint).await.map_err(|error| OnceError::Failed { error, recorded: true })?;
    if bytes.len() > RESULT_BYTES_MAX {
        return Err(OnceError::TooLarge { bytes, limit: RESULT_BYTES_MAX });
    }
    let token = next_token(&mut savepoint).await.map_err(refused)?;
    sqlx::query(concat!(
        "INSERT OR REPLACE INTO seawall_idempotency_keys
             (scope, key, fingerprint, state, holder, fencing_token, result, lease_until, expires_at)
         VALUES (?1, ?2, ?3, 1, 0, ?4, ?5, ",
        sqlite_sql!(now),
        ",
                 ",
        sqlite_sql!(now),
        " + ?6)"
    ))
    .bind(key.scope())
    .bind(key.key())
    .bind(&fingerprint[..])
    .bind(token)
    .bind(&bytes)
    .bind(millis(KEPT))
    .execute(&mut *savepoint)
    .await
    .map_err(refused)?;
    savepoint.commit().await.map_err(refused)?;
    Ok(OnceOutcome::ran(bytes))
}
