//! Writes of the journal on SQLite: a transaction that begins as a writer.

use seawall_dist::StoreError;
use seawall_dist::saga::{SagaWrite, WriteOutcome};
use sqlx::sqlite::SqlitePool;

use crate::duration::millis;
use crate::fault::store_error;
use crate::sqlite::begin;
use crate::text::error_text;

pub(super) async fn write(pool: &SqlitePool, write: &SagaWrite) -> Result<WriteOutcome, StoreError> {
    let failed = store_error("writing the journal of a saga");
    let update = concat!(
        "UPDATE seawall_sagas SET version = version + 1, state = $4, reason = $5, updated_at = ",
        sqlite_sql!(now),
        ", resolution = $6, active_entity = CASE WHEN $7 THEN NULL ELSE active_entity END, lease_until = CASE WHEN $8 THEN ",
        sqlite_sql!(now),
        " ELSE lease_until END, deadline_at = COALESCE(",
        sqlite_sql!(now),
        " + $9, deadline_at) WHERE id = $1 AND fence = $2 AND version = $3"
    );
    let mut transaction = begin(pool).await.map_err(failed)?;
    let done = sqlx::query(update)
        .bind(&write.id)
        .bind(write.fence as i64)
        .bind(write.version as i64)
        .bind(write.state.name())
        .bind(write.reason.as_deref().map(error_text))
        .bind(write.resolution().map(error_text))
        .bind(write.frees_entity())
        .bind(write.ends_lease())
        .bind(write.timeout.map(millis))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    if done.rows_affected() == 0 {
        let found: Option<(i64, i64)> =
            sqlx::query_as("SELECT fence, version FROM seawall_sagas WHERE id = $1")
                .bind(&write.id)
                .fetch_optional(&mut *transaction)
                .await
                .map_err(failed)?;
        let (fence, version) = found.unwrap_or_default();
        return Ok(WriteOutcome::Conflict { fence: fence as u64, version: version as u64 });
    }
    let insert = concat!(
        "INSERT INTO seawall_saga_journal (saga_id, seq, kind, step, attempt, payload, text, at) VALUES ($1, $2, $3, $4, $5, $6, $7, ",
        sqlite_sql!(now),
        ")"
    );
    sqlx::query(insert)
        .bind(&write.id)
        .bind(write.version as i64 + 1)
        .bind(write.entry.kind.name())
        .bind(&write.entry.step)
        .bind(i64::from(write.entry.attempt))
        .bind(&write.entry.payload)
        .bind(write.entry.text.as_deref().map(error_text))
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(WriteOutcome::Written)
}
