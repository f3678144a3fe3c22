//! Taking a key.

use seawall_dist::StoreError;
use seawall_dist::idempotency::{ClaimAnswer, ClaimRequest, Fingerprint, IdempotencyKey};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnection, SqlitePool};
use sqlx::{Row, Sqlite};

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
    sqlx::query(
        "INSERT OR REPLACE INTO seawall_idempotency_keys
             (scope, key, fingerprint, state, holder, fencing_token, lease_until, expires_at)
         VALUES (?1, ?2, ?3, 0, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?6,
                 CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?7)",
    )
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

/// Reads the row of a key.
pub(super) async fn look(
    connection: &mut SqliteConnection,
    key: &IdempotencyKey,
    fingerprint: &Fingerprint,
    holder: u64,
) -> Result<Option<KeyRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT state, fingerprint = ?3, holder = ?4, fencing_token, result,
                lease_until - CAST(unixepoch('subsec') * 1000 AS INTEGER),
                expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
         FROM seawall_idempotency_keys WHERE scope = ?1 AND key = ?2",
    )
    .bind(key.scope())
    .bind(key.key())
    .bind(&fingerprint[..])
    .bind(holder.cast_signed())
    .fetch_optional(connection)
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
