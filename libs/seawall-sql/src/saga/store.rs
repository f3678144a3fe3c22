//! The store of sagas, written once for both databases; a macro for the reason that `dead_letter` gives. Only the write of the
//! journal differs, and is a function of each database.
//!
//! Statements that write and return a row use `fetch_all`: on SQLite, `fetch_one` of `sqlx` does not hear that the commit failed.

/// Writes a store of sagas for one database, beside a module `write`.
macro_rules! saga_store {
    (
        $(#[$doc:meta])*
        store $name:ident on $pool:ident, $row:ident;
        sql $sql:ident;
    ) => {
        use std::time::Duration;

        use seawall::Fault;
        use seawall_dist::saga::{
            ClaimOutcome, CreateOutcome, DefinitionId, DueSagas, EntryKind, JournalEntry, SagaFilter, SagaLease,
            SagaRecord, SagaRow, SagaState, SagaStore, SagaWrite, WriteOutcome,
        };
        use seawall_dist::{Millis, StoreError, StoreFuture};
        use sqlx::Row;

        use crate::duration::millis;
        use crate::fault::store_error;
        use crate::saga::{is_open, unknown};
        use crate::unreadable;

        /// The columns of a record, times as milliseconds.
        macro_rules! columns {
            () => {
                concat!("id, name, definition_version, state, reason, entity, input, version, owner, fence, \
                 ", $sql!(millis "lease_until"), ", ", $sql!(millis "created_at"), ", \
                 ", $sql!(millis "updated_at"), ", ", $sql!(millis "deadline_at"), ", \
                 resolution, ", $sql!(millis_now))
            };
        }

        /// Sagas that have not ended.
        macro_rules! open {
            () => {
                "(state IN ('running', 'compensating') OR (state = 'needs_attention' AND resolution IS NULL))"
            };
        }

        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            pool: $pool,
        }

        impl $name {
            /// Creates a store on this pool.
            #[must_use]
            pub fn new(pool: $pool) -> Self {
                $name { pool }
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
            async fn claimed(&self, action: &'static str, row: &$row) -> Result<SagaRecord, StoreError> {
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
                let query = concat!("SELECT kind, step, attempt, payload, text, ", $sql!(millis "at"), " \
                             FROM seawall_saga_journal WHERE saga_id = $1 AND seq <= $2 ORDER BY seq");
                let rows =
                    sqlx::query(query).bind(id).bind(version as i64).fetch_all(&self.pool).await.map_err(failed)?;
                rows.iter().map(|row| entry(row).map_err(failed)).collect()
            }
        }

        impl SagaStore for $name {
            fn create<'a>(&'a self, row: &'a SagaRow) -> StoreFuture<'a, CreateOutcome> {
                Box::pin(async move {
                    const ACTION: &str = "storing a saga";
                    let failed = store_error(ACTION);
                    let insert = concat!(
                        "INSERT INTO seawall_sagas (id, name, definition_version, entity, active_entity, input, owner, lease_until, deadline_at, created_at, updated_at, fence) \
                         VALUES ($1, $2, $3, $4, $4, $5, $6, ", $sql!(later "$7"), ", ", $sql!(later "$8"), ", ", $sql!(now), ", ", $sql!(now), ", $9) \
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
                            .bind(millis(row.lease))
                            .bind(millis(row.timeout))
                            .bind(row.first_fence() as i64)
                            .fetch_all(&self.pool)
                            .await
                            .map_err(failed)?;
                        if let Some(row) = inserted.first() {
                            return Ok(CreateOutcome::Created(record(row).map_err(failed)?));
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
                        " FROM seawall_sagas WHERE (CAST($1 AS TEXT) IS NULL OR state = $1) AND ($1 IS DISTINCT FROM 'needs_attention' OR resolution IS NULL) \
                          AND (CAST($2 AS TEXT) IS NULL OR id > $2) \
                          AND (CAST($4 AS BIGINT) IS NULL OR (state IN ('running', 'compensating') AND lease_until <= ", $sql!(earlier "$4"), ")) \
                          ORDER BY id LIMIT $3"
                    );
                    let rows = sqlx::query(query)
                        .bind(filter.state.map(SagaState::name))
                        .bind(&filter.after)
                        .bind(i64::from(filter.limit))
                        .bind(filter.unclaimed_for.map(millis))
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
                        "UPDATE seawall_sagas SET owner = $2, fence = fence + 1, lease_until = ", $sql!(later "$3"), " \
                         WHERE id = $1 AND lease_until <= ", $sql!(now), " AND ",
                        open!(),
                        " RETURNING ",
                        columns!()
                    );
                    // A lease may end between two statements.
                    for _ in 0..3 {
                        let claimed = sqlx::query(update)
                            .bind(id)
                            .bind(owner)
                            .bind(millis(lease))
                            .fetch_all(&self.pool)
                            .await
                            .map_err(failed)?;
                        if let Some(row) = claimed.first() {
                            return Ok(ClaimOutcome::Claimed(self.claimed(ACTION, row).await?));
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
                        "UPDATE seawall_sagas SET owner = $1, fence = fence + 1, lease_until = ", $sql!(later "$2"), " \
                         WHERE id IN (SELECT id FROM seawall_sagas WHERE state IN ('running', 'compensating') AND lease_until <= ", $sql!(now), " \
                         AND ", $sql!(position), "($3, ' ' || name || '@' || definition_version || ' ') > 0 \
                         ORDER BY lease_until LIMIT $4", $sql!(skip_locked), ") RETURNING ",
                        columns!()
                    );
                    // Names have no white space, so they can't run together.
                    let known: String = due.known.iter().map(|id| format!(" {id} ")).collect();
                    let rows = sqlx::query(update)
                        .bind(&due.owner)
                        .bind(millis(due.lease))
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
                        "UPDATE seawall_sagas SET lease_until = ", $sql!(later "$3"), " WHERE id = $1 AND fence = $2 AND ",
                        open!()
                    );
                    let query = sqlx::query(update).bind(id).bind(fence as i64).bind(millis(lease));
                    let done =
                        query.execute(&self.pool).await.map_err(store_error("renewing the lease of a saga"))?;
                    Ok(done.rows_affected() == 1)
                })
            }

            fn release<'a>(&'a self, id: &'a str, fence: u64) -> StoreFuture<'a, ()> {
                Box::pin(async move {
                    let update = concat!("UPDATE seawall_sagas SET lease_until = ", $sql!(now), " WHERE id = $1 AND fence = $2");
                    let query = sqlx::query(update).bind(id).bind(fence as i64);
                    query.execute(&self.pool).await.map_err(store_error("giving back a saga")).map(|_| ())
                })
            }

            fn write<'a>(&'a self, write: &'a SagaWrite) -> StoreFuture<'a, WriteOutcome> {
                Box::pin(write::write(&self.pool, write))
            }

            fn count(&self) -> StoreFuture<'_, Vec<(SagaState, u64)>> {
                Box::pin(async move {
                    let failed = store_error("counting sagas");
                    // Each half has its partial index.
                    let query = "SELECT state, count(*) FROM seawall_sagas WHERE state IN ('running', 'compensating') GROUP BY state \
                         UNION ALL SELECT state, count(*) FROM seawall_sagas WHERE state = 'needs_attention' AND resolution IS NULL GROUP BY state";
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
                    let query = concat!("SELECT name, definition_version, count(*) FROM seawall_sagas WHERE state IN ('running', 'compensating') \
                         AND lease_until <= ", $sql!(earlier "$1"), " GROUP BY name, definition_version");
                    let query = sqlx::query_as(query).bind(millis(age));
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
                    let delete = concat!("DELETE FROM seawall_sagas WHERE id IN (SELECT id FROM seawall_sagas \
                         WHERE (state IN ('completed', 'compensated') OR resolution IS NOT NULL) AND updated_at <= ", $sql!(earlier "$1"), " \
                         LIMIT $2", $sql!(skip_locked), ")");
                    let query = sqlx::query(delete).bind(millis(age)).bind(i64::from(limit));
                    let done = query.execute(&self.pool).await.map_err(store_error("deleting old sagas"))?;
                    Ok(done.rows_affected())
                })
            }
        }

        fn record(row: &$row) -> Result<SagaRecord, sqlx::Error> {
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

        fn entry(row: &$row) -> Result<JournalEntry, sqlx::Error> {
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
    };
}
