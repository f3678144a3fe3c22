//! Writes of the journal on PostgreSQL: one statement, which leaves no transaction open.

use seawall_dist::StoreError;
use seawall_dist::saga::{SagaWrite, WriteOutcome};
use sqlx::postgres::PgPool;

use crate::duration::millis;
use crate::fault::store_error;
use crate::text::error_text;

pub(super) async fn write(pool: &PgPool, write: &SagaWrite) -> Result<WriteOutcome, StoreError> {
    let failed = store_error("writing the journal of a saga");
    let statement = "WITH moved AS (UPDATE seawall_sagas SET version = version + 1, state = $4, reason = $5, updated_at = now(), \
         resolution = $6, active_entity = CASE WHEN $7 THEN NULL ELSE active_entity END, \
         lease_until = CASE WHEN $8 THEN now() ELSE lease_until END, \
         deadline_at = COALESCE(now() + $14 * interval '1 millisecond', deadline_at) \
         WHERE id = $1 AND fence = $2 AND version = $3 RETURNING id, version) \
         INSERT INTO seawall_saga_journal (saga_id, seq, kind, step, attempt, payload, text) \
         SELECT id, version, $9, $10, $11, $12, $13 FROM moved";
    let done = sqlx::query(statement)
        .bind(&write.id)
        .bind(write.fence as i64)
        .bind(write.version as i64)
        .bind(write.state.name())
        .bind(write.reason.as_deref().map(error_text))
        .bind(write.resolution().map(error_text))
        .bind(write.frees_entity())
        .bind(write.ends_lease())
        .bind(write.entry.kind.name())
        .bind(&write.entry.step)
        .bind(i64::from(write.entry.attempt))
        .bind(&write.entry.payload)
        .bind(write.entry.text.as_deref().map(error_text))
        .bind(write.timeout.map(millis))
        .execute(pool)
        .await
        .map_err(failed)?;
    if done.rows_affected() == 1 {
        return Ok(WriteOutcome::Written);
    }
    let found: Option<(i64, i64)> = sqlx::query_as("SELECT fence, version FROM seawall_sagas WHERE id = $1")
        .bind(&write.id)
        .fetch_optional(pool)
        .await
        .map_err(failed)?;
    let (fence, version) = found.unwrap_or_default();
    Ok(WriteOutcome::Conflict { fence: fence as u64, version: version as u64 })
}
