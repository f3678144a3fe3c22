//! Taking a key.

use seawall_dist::StoreError;
use seawall_dist::idempotency::{ClaimAnswer, ClaimRequest, IdempotencyKey};
use sqlx::Sqlite;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use super::look;
use crate::fault::store_error;
use crate::idempotency::{KeyRow, millis};
use crate::sqlite::begin;

pub(super) async fn claim(
    pool: &SqlitePool,
    mut connection: PoolConnection<Sqlite>,
    key: &IdempotencyKey,
    request: ClaimRequest,
) -> Result<ClaimAnswer, StoreError> {
    let failed = store_error("claiming an idempotency key");
    // Repetitions are answered by a read, beside the writer.
    let row = look(&mut connection, key, &request.fingerprint, request.holder).await.map_err(failed)?;
    if let Some(answer) = row.and_then(KeyRow::answer) {
        return Ok(answer);
    }
    drop(connection);
    let mut transaction = begin(pool).await.map_err(failed)?;
    let row = look(&mut transaction, key, &request.fingerprint, request.holder).await.map_err(failed)?;
    if let Some(answer) = row.and_then(KeyRow::answer) {
        return Ok(answer);
    }
    let token = next_token(&mut transaction).await.map_err(failed)?;
    // Nobody writes between the look and this.
    sqlx::query(concat!(
        "INSERT OR REPLACE INTO seawall_idempotency_keys
             (scope, key, fingerprint, state, holder, fencing_token, lease_until, expires_at)
         VALUES (?1, ?2, ?3, 0, ?4, ?5, ",
        sqlite_sql!(now),
        " + ?6,
                 ",
        sqlite_sql!(now),
        " + ?7)"
    ))
    .bind(key.scope())
    .bind(key.key())
    .bind(&request.fingerprint[..])
    .bind(request.holder.cast_signed())
    .bind(token)
    .bind(millis(request.lease))
    .bind(millis(request.ttl.max(request.lease)))
    .execute(&mut *transaction)
    .await
    .map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(ClaimAnswer::Acquired { fencing_token: token.cast_unsigned() })
}

/// Draws the next fencing token.
pub(super) async fn next_token(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("UPDATE seawall_idempotency_fencing SET token = token + 1 RETURNING token")
        .fetch_one(connection)
        .await
}
