//! Sagas on PostgreSQL: the store, and marks that steps write beside their effects.
//!
//! Every operation is one statement, so none leaves a transaction open. Times come from the database's clock.

mod mark;

pub use mark::{clean_up_marks, mark_compensation, mark_step};

use std::time::Duration;

use seawall::Fault;
use seawall_dist::saga::{
    ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, EntryKind, JournalEntry, SagaFilter, SagaLease,
    SagaRecord, SagaRow, SagaState, SagaStore, SagaWrite, WriteOutcome,
};
use seawall_dist::{Millis, StoreError, StoreFuture};
use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};

use crate::duration::seconds;
use crate::fault::store_error;
use crate::text::error_text;
use crate::unreadable;

/// The columns of a record, times as milliseconds.
macro_rules! columns {
    () => {
        "id, name, definition_version, state, reason, entity, input, version, owner, fence, \
         floor(extract(epoch FROM lease_until) * 1000)::BIGINT, floor(extract(epoch FROM created_at) * 1000)::BIGINT, \
         floor(extract(epoch FROM updated_at) * 1000)::BIGINT, floor(extract(epoch FROM deadline_at) * 1000)::BIGINT, \
         resolution, floor(extract(epoch FROM now()) * 1000)::BIGINT"
    };
}

/// Sagas that have not ended.
macro_rules! open {
    () => {
        "(state IN ('running', 'compensating') OR (state = 'needs_attention' AND resolution IS NULL))"
    };
}

/// A store of sagas on PostgreSQL. Apply [the schema](crate::postgres::migrate) first.
#[derive(Clone, Debug)]
pub struct PostgresSagaStore {
    pool: PgPool,
}

impl PostgresSagaStore {
    /// Creates a store on this pool.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        PostgresSagaStore { pool }
    }

    async fn read(&self, action: &'static str, id: &str) -> Result<Option<SagaRecord>, StoreError> {
        let failed = store_error(action);
        let query = concat!("SELECT ", columns!(), " FROM seawall_sagas WHERE id = $1");
        let row = sqlx::query(query).bind(id).fetch_optional(&self.pool).await.map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut record = record(&row).map_err(failed)?;
        record.journal = self.journal(action, id, record.version).await?;
        Ok(Some(record))
    }

    /// The saga of a row that was claimed.
    async fn claimed(&self, action: &'static str, row: &PgRow) -> Result<SagaRecord, StoreError> {
        let mut record = record(row).map_err(store_error(action))?;
        record.journal = self.journal(action, &record.id, record.version).await?;
        Ok(record)
    }

    /// The journal up to a version: what others append in the meantime belongs to a later record.
    async fn journal(
        &self,
        action: &'static str,
        id: &str,
        version: u64,
    ) -> Result<Vec<JournalEntry>, StoreError> {
        let failed = store_error(action);
        let query = "SELECT kind, step, attempt, payload, text, floor(extract(epoch FROM at) * 1000)::BIGINT \
                     FROM seawall_saga_journal WHERE saga_id = $1 AND seq <= $2 ORDER BY seq";
        let rows =
            sqlx::query(query).bind(id).bind(version as i64).fetch_all(&self.pool).await.map_err(failed)?;
        rows.iter().map(|row| entry(row).map_err(failed)).collect()
    }
}

impl SagaStore for PostgresSagaStore {
    fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
        Box::pin(async move {
            const ACTION: &str = "storing a saga";
            let failed = store_error(ACTION);
            let insert = concat!(
                "INSERT INTO seawall_sagas (id, name, definition_version, entity, active_entity, input, owner, lease_until, deadline_at, fence) \
                 VALUES ($1, $2, $3, $4, $4, $5, $6, now() + make_interval(secs => $7), now() + make_interval(secs => $8), $9) \
                 ON CONFLICT DO NOTHING RETURNING ",
                columns!()
            );
            // A saga that held the id or the entity may end between two statements.
            for _ in 0..3 {
                let inserted = sqlx::query(insert)
                    .bind(&row.id)
                    .bind(&row.definition.name)
                    .bind(i64::from(row.definition.version))
                    .bind(&row.entity)
                    .bind(&row.input)
                    .bind(&row.owner)
                    .bind(seconds(row.lease))
                    .bind(seconds(row.timeout))
                    .bind(row.first_fence() as i64)
                    .fetch_optional(&self.pool)
                    .await
                    .map_err(failed)?;
                if let Some(row) = inserted {
                    return Ok(CreateOutcome::Created(record(&row).map_err(failed)?));
                }
                if let Some(record) = self.read(ACTION, &row.id).await? {
                    return Ok(CreateOutcome::Exists(record));
                }
                let holder = sqlx::query_scalar("SELECT id FROM seawall_sagas WHERE active_entity = $1")
                    .bind(&row.entity)
                    .fetch_optional(&self.pool)
                    .await
                    .map_err(failed)?;
                if let Some(saga) = holder {
                    return Ok(CreateOutcome::EntityBusy { saga });
                }
            }
            Err(StoreError::without_cause(ACTION, Fault::protocol()))
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<SagaRecord>> {
        Box::pin(self.read("reading a saga", id))
    }

    fn list<'a>(&'a self, filter: &'a SagaFilter) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(async move {
            let failed = store_error("listing sagas");
            let query = concat!(
                "SELECT ",
                columns!(),
                " FROM seawall_sagas WHERE ($1::TEXT IS NULL OR state = $1) AND ($1 IS DISTINCT FROM 'needs_attention' OR resolution IS NULL) \
                  AND ($2::TEXT IS NULL OR id > $2) \
                  AND ($4::DOUBLE PRECISION IS NULL OR (state IN ('running', 'compensating') AND lease_until <= now() - make_interval(secs => $4))) \
                  ORDER BY id LIMIT $3"
            );
            let rows = sqlx::query(query)
                .bind(filter.state.map(SagaState::name))
                .bind(&filter.after)
                .bind(i64::from(filter.limit))
                .bind(filter.unclaimed_for.map(|age| age.as_secs_f64()))
                .fetch_all(&self.pool)
                .await
                .map_err(failed)?;
            rows.iter().map(|row| record(row).map_err(failed)).collect()
        })
    }

    fn claim<'a>(&'a self, id: &'a str, owner: &'a str, lease: Duration) -> StoreFuture<'a, ClaimOutcome> {
        Box::pin(async move {
            const ACTION: &str = "claiming a saga";
            let failed = store_error(ACTION);
            let update = concat!(
                "UPDATE seawall_sagas SET owner = $2, fence = fence + 1, lease_until = now() + make_interval(secs => $3) \
                 WHERE id = $1 AND lease_until <= now() AND ",
                open!(),
                " RETURNING ",
                columns!()
            );
            // A lease may end between two statements.
            for _ in 0..3 {
                let claimed = sqlx::query(update)
                    .bind(id)
                    .bind(owner)
                    .bind(seconds(lease))
                    .fetch_optional(&self.pool)
                    .await
                    .map_err(failed)?;
                if let Some(row) = claimed {
                    return Ok(ClaimOutcome::Claimed(self.claimed(ACTION, &row).await?));
                }
                match self.read(ACTION, id).await? {
                    None => return Ok(ClaimOutcome::Missing),
                    Some(record) if record.lease.until > record.now => {
                        return Ok(ClaimOutcome::Held(record.lease));
                    }
                    Some(record) if !is_open(&record) => return Ok(ClaimOutcome::Ended(record)),
                    Some(_) => {}
                }
            }
            Err(StoreError::without_cause(ACTION, Fault::protocol()))
        })
    }

    fn claim_due<'a>(&'a self, due: &'a DueSagas) -> StoreFuture<'a, Vec<SagaRecord>> {
        Box::pin(async move {
            const ACTION: &str = "claiming due sagas";
            let failed = store_error(ACTION);
            let update = concat!(
                "UPDATE seawall_sagas SET owner = $1, fence = fence + 1, lease_until = now() + make_interval(secs => $2) \
                 WHERE id IN (SELECT id FROM seawall_sagas WHERE state IN ('running', 'compensating') AND lease_until <= now() \
                 AND name || '@' || definition_version = ANY($3) \
                 ORDER BY lease_until LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING ",
                columns!()
            );
            let known: Vec<String> = due.known.iter().map(ToString::to_string).collect();
            let rows = sqlx::query(update)
                .bind(&due.owner)
                .bind(seconds(due.lease))
                .bind(known)
                .bind(i64::from(due.limit))
                .fetch_all(&self.pool)
                .await
                .map_err(failed)?;
            let mut records = Vec::with_capacity(rows.len());
            for row in &rows {
                match self.claimed(ACTION, row).await {
                    Ok(record) => records.push(record),
                    Err(error) if error.fault().is_transient() => return Err(error),
                    Err(error) => {
                        let (id, fence): (String, i64) =
                            (row.try_get(0).map_err(failed)?, row.try_get(9).map_err(failed)?);
                        unreadable::tell_saga(&id, &error);
                        self.release(&id, fence as u64).await?;
                    }
                }
            }
            Ok(records)
        })
    }

    fn renew<'a>(&'a self, id: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let update = concat!(
                "UPDATE seawall_sagas SET lease_until = now() + make_interval(secs => $3) WHERE id = $1 AND fence = $2 AND ",
                open!()
            );
            let query = sqlx::query(update).bind(id).bind(fence as i64).bind(seconds(lease));
            let done =
                query.execute(&self.pool).await.map_err(store_error("renewing the lease of a saga"))?;
            Ok(done.rows_affected() == 1)
        })
    }

    fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let update = "UPDATE seawall_sagas SET lease_until = now() WHERE id = $1 AND fence = $2";
            let query = sqlx::query(update).bind(id).bind(fence as i64);
            query.execute(&self.pool).await.map_err(store_error("giving back a saga")).map(|_| ())
        })
    }

    fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
        Box::pin(async move {
            let failed = store_error("writing the journal of a saga");
            let statement = "WITH moved AS (UPDATE seawall_sagas SET version = version + 1, state = $4, reason = $5, updated_at = now(), \
                 resolution = $6, active_entity = CASE WHEN $7 THEN NULL ELSE active_entity END, \
                 lease_until = CASE WHEN $8 THEN now() ELSE lease_until END, \
                 deadline_at = COALESCE(now() + make_interval(secs => $14), deadline_at) \
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
                .bind(write.timeout.map(seconds))
                .execute(&self.pool)
                .await
                .map_err(failed)?;
            if done.rows_affected() == 1 {
                return Ok(WriteOutcome::Written);
            }
            let found: Option<(i64, i64)> =
                sqlx::query_as("SELECT fence, version FROM seawall_sagas WHERE id = $1")
                    .bind(&write.id)
                    .fetch_optional(&self.pool)
                    .await
                    .map_err(failed)?;
            let (fence, version) = found.unwrap_or_default();
            Ok(WriteOutcome::Conflict { fence: fence as u64, version: version as u64 })
        })
    }

    fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
        Box::pin(async move {
            let failed = store_error("counting sagas");
            let query = "SELECT state, count(*) FROM seawall_sagas WHERE resolution IS NULL GROUP BY state";
            let rows: Vec<(String, i64)> =
                sqlx::query_as(query).fetch_all(&self.pool).await.map_err(failed)?;
            Ok(rows
                .into_iter()
                .filter_map(|(state, count)| Some((SagaState::of_name(&state)?, count as u64)))
                .collect())
        })
    }

    fn unclaimed(&self, age: Duration) -> StoreFuture<'_, Vec<(DefinitionId, u64)>> {
        Box::pin(async move {
            let query = "SELECT name, definition_version, count(*) FROM seawall_sagas WHERE state IN ('running', 'compensating') \
                 AND lease_until <= now() - make_interval(secs => $1) GROUP BY name, definition_version";
            let query = sqlx::query_as(query).bind(age.as_secs_f64());
            let rows: Vec<(String, i64, i64)> =
                query.fetch_all(&self.pool).await.map_err(store_error("counting unclaimed sagas"))?;
            Ok(rows
                .into_iter()
                .map(|(name, version, count)| (DefinitionId { name, version: version as u32 }, count as u64))
                .collect())
        })
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let delete = "DELETE FROM seawall_sagas WHERE id IN (SELECT id FROM seawall_sagas \
                 WHERE (state IN ('completed', 'compensated') OR resolution IS NOT NULL) AND updated_at <= now() - make_interval(secs => $1) \
                 LIMIT $2 FOR UPDATE SKIP LOCKED)";
            let query = sqlx::query(delete).bind(seconds(age)).bind(i64::from(limit));
            let done = query.execute(&self.pool).await.map_err(store_error("deleting old sagas"))?;
            Ok(done.rows_affected())
        })
    }
}

fn is_open(record: &SagaRecord) -> bool {
    record.state.is_active() || (record.state == SagaState::NeedsAttention && record.resolution.is_none())
}

fn record(row: &PgRow) -> Result<SagaRecord, sqlx::Error> {
    let millis = |index: usize| row.try_get(index).map(Millis);
    let number = |index: usize| row.try_get(index).map(|number: i64| number as u64);
    let state: String = row.try_get(3)?;
    Ok(SagaRecord {
        id: row.try_get(0)?,
        definition: DefinitionId { name: row.try_get(1)?, version: row.try_get::<i64, _>(2)? as u32 },
        state: SagaState::of_name(&state).ok_or_else(|| unknown("state", &state))?,
        reason: row.try_get(4)?,
        entity: row.try_get(5)?,
        input: row.try_get(6)?,
        version: number(7)?,
        lease: SagaLease { owner: row.try_get(8)?, fence: number(9)?, until: millis(10)? },
        created_at: millis(11)?,
        updated_at: millis(12)?,
        deadline_at: millis(13)?,
        resolution: row.try_get(14)?,
        now: millis(15)?,
        journal: Vec::new(),
    })
}

fn entry(row: &PgRow) -> Result<JournalEntry, sqlx::Error> {
    let kind: String = row.try_get(0)?;
    Ok(JournalEntry {
        kind: EntryKind::of_name(&kind).ok_or_else(|| unknown("kind of entry", &kind))?,
        step: row.try_get(1)?,
        attempt: row.try_get::<i64, _>(2)? as u32,
        payload: row.try_get(3)?,
        text: row.try_get(4)?,
        at: Millis(row.try_get(5)?),
    })
}

fn unknown(what: &str, name: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("`{name}` is no {what} of a saga that this version knows").into())
}
