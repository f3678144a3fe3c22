//! The store, written once for both databases. Each method loads a letter, asks the machine of `seawall_dist::deadletter`, and
//! keeps what it says, all in one transaction.
//!
//! # Why a macro?
//! Everything but four words of SQL is the same, and `sqlx` needs a page of bounds for a function that is generic over the
//! database.

/// Writes a store of dead letters for one database.
macro_rules! dead_letter_store {
    (
        $(#[$doc:meta])*
        store $name:ident on $database:ident, $pool:ident, $connection:ident, $row:path;
        begin $begin:expr;
        now $now:literal;
        for_update $for_update:literal;
        position $position:literal;
    ) => {
        use std::time::Duration;

        use seawall_dist::deadletter::{
            LetterChange, ChangeOutcome, ReplayClaim, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, Edit, FailedReplay, LetterFault,
            Filter, GroupCount, LetterOrder, Origin, Page, PutOutcome, Record, ReplayRequest, ReplayStart, Status, apply, begin_replay,
            copy, finish_replay, merge, searched_text,
        };
        use seawall_dist::{Millis, StoreError, StoreFuture};
        use sqlx::{$database, QueryBuilder, Row};

        use crate::dead_letter::{
            attempts_of, attempts_text, clean, clean_filter, clean_id, clean_request, clean_text, headers_of, headers_text,
            not_before_sql, order_sql,
            replays_of, replays_text,
        };
        use crate::duration::millis;
        use crate::fault::store_error;

        const COLUMNS: &str = "id, kind, place, original_id, original_at, payload, headers, reason, message, at, attempts, \
            trace, status, deleted_at, replays, claims, claim_key, claim_until, copy_of, superseded_by";

        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            pool: $pool,
        }

        impl $name {
            /// Creates a store on a pool whose database has the schema.
            #[must_use]
            pub fn new(pool: $pool) -> Self {
                $name { pool }
            }

            /// Keeps a record within a transaction of the caller: the message is removed from its queue and put away here in
            /// one commit, so that nothing is removed that is not kept.
            pub async fn put_in(connection: &mut $connection, record: &Record) -> Result<PutOutcome, StoreError> {
                put(connection, record).await.map_err(store_error("keeping a dead letter"))
            }

            /// Marks a letter as replayed within a transaction of the caller and gives the message, which the caller writes to
            /// an outbox in the same transaction. Then the replay happens exactly if the commit does. Anything but
            /// [`ReplayStart::Started`] means that there is nothing to write.
            pub async fn replay_in(
                connection: &mut $connection,
                id: &str,
                request: &ReplayRequest,
            ) -> Result<ReplayStart, StoreError> {
                let failed = store_error("replaying a dead letter");
                let Some((mut letter, now)) = load(connection, id).await.map_err(failed)? else {
                    return Ok(ReplayStart::Absent);
                };
                let start = begin_replay(&mut letter, &clean_request(request), now);
                if let ReplayStart::Started { claim, .. } = &start {
                    finish_replay(&mut letter, *claim, None, now);
                    save(connection, &letter).await.map_err(failed)?;
                }
                Ok(start)
            }

            /// Loads a letter, lets it be changed, and saves it, in one transaction.
            async fn update<T>(
                &self,
                id: &str,
                absent: T,
                change: impl FnOnce(&mut DeadLetter, Millis) -> T + Send,
            ) -> Result<T, sqlx::Error> {
                let mut transaction = $begin(&self.pool).await?;
                let Some((mut letter, now)) = load(&mut transaction, id).await? else { return Ok(absent) };
                let before = letter.clone();
                let outcome = change(&mut letter, now);
                if letter != before {
                    save(&mut transaction, &letter).await?;
                }
                transaction.commit().await?;
                Ok(outcome)
            }

            async fn copied(&self, id: &str, edit: &Edit, copy_id: &str) -> Result<CopyOutcome, sqlx::Error> {
                let mut transaction = $begin(&self.pool).await?;
                let Some((mut letter, now)) = load(&mut transaction, id).await? else { return Ok(CopyOutcome::Absent) };
                let existing = load(&mut transaction, copy_id).await?.map(|(letter, _)| letter);
                let is_new = existing.is_none();
                let outcome = copy(&mut letter, edit, &clean_id(copy_id), existing, now);
                if let CopyOutcome::Copied(copy) = &outcome && is_new {
                    insert(&mut transaction, copy).await?;
                    save(&mut transaction, &letter).await?;
                }
                transaction.commit().await?;
                Ok(outcome)
            }
        }

        async fn put(connection: &mut $connection, record: &Record) -> Result<PutOutcome, sqlx::Error> {
            let record = clean(record);
            let letter = DeadLetter::new(record);
            if insert(connection, &letter).await? {
                return Ok(PutOutcome::Created);
            }
            match load(connection, letter.id()).await? {
                None => Err(sqlx::Error::RowNotFound),
                Some((mut known, now)) => {
                    let outcome = merge(&mut known, &letter.record, now);
                    if outcome == PutOutcome::Updated {
                        save(connection, &known).await?;
                    }
                    Ok(outcome)
                }
            }
        }

        /// Inserts a letter; false if its id is taken.
        async fn insert(connection: &mut $connection, letter: &DeadLetter) -> Result<bool, sqlx::Error> {
            const INSERT: &str = "INSERT INTO seawall_dead_letters (id, kind, place, original_id, original_at, payload, headers, \
                reason, message, at, attempts, trace, status, replays, claims, copy_of, searched) \
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16) ON CONFLICT (id) DO NOTHING";
            let Record { id, origin, payload, headers, fault, at, attempts, trace } = &letter.record;
            let result = sqlx::query(INSERT)
                .bind(id)
                .bind(&origin.kind)
                .bind(&origin.place)
                .bind(&origin.id)
                .bind(origin.at.map(|at| at.0))
                .bind(payload)
                .bind(headers_text(headers))
                .bind(&fault.reason)
                .bind(&fault.message)
                .bind(at.0)
                .bind(attempts_text(attempts))
                .bind(trace)
                .bind(letter.status.name())
                .bind(replays_text(&letter.replays))
                .bind(&letter.copy_of)
                .bind(searched_text(&letter.record))
                .execute(connection)
                .await?;
            Ok(result.rows_affected() == 1)
        }

        /// Loads a letter and locks it until the transaction ends; with the time of the database.
        async fn load(connection: &mut $connection, id: &str) -> Result<Option<(DeadLetter, Millis)>, sqlx::Error> {
            let mut query = QueryBuilder::<$database>::new("SELECT ");
            query.push(COLUMNS).push(", ").push($now).push(" AS now FROM seawall_dead_letters WHERE id = ");
            query.push_bind(clean_id(id)).push($for_update);
            let row = query.build().fetch_optional(connection).await?;
            row.map(|row| Ok((letter_of(&row)?, Millis(row.try_get("now")?)))).transpose()
        }

        /// Saves what can change of a letter.
        async fn save(connection: &mut $connection, letter: &DeadLetter) -> Result<(), sqlx::Error> {
            const UPDATE: &str = "UPDATE seawall_dead_letters SET reason = $2, message = $3, at = $4, attempts = $5, status = $6, \
                deleted_at = $7, replays = $8, replayed_at = $9, claims = $10, claim_key = $11, claim_until = $12, \
                superseded_by = $13, searched = $14 WHERE id = $1";
            let Record { id, fault, at, attempts, .. } = &letter.record;
            sqlx::query(UPDATE)
                .bind(id)
                .bind(&fault.reason)
                .bind(&fault.message)
                .bind(at.0)
                .bind(attempts_text(attempts))
                .bind(letter.status.name())
                .bind(letter.deleted_at.map(|at| at.0))
                .bind(replays_text(&letter.replays))
                .bind(letter.replayed_at().map(|at| at.0))
                .bind(i64::try_from(letter.claims).unwrap_or(i64::MAX))
                .bind(letter.claim.as_ref().map(|claim| clean_text(&claim.key)))
                .bind(letter.claim.as_ref().map(|claim| claim.until.0))
                .bind(&letter.superseded_by)
                .bind(searched_text(&letter.record))
                .execute(connection)
                .await?;
            Ok(())
        }

        fn letter_of(row: &$row) -> Result<DeadLetter, sqlx::Error> {
            let text = |column: &str| row.try_get::<String, _>(column);
            let time = |column: &str| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.map(Millis));
            let status = text("status")?.parse::<Status>().map_err(|error| sqlx::Error::Decode(error.into()))?;
            let record = Record {
                id: text("id")?,
                origin: Origin {
                    kind: text("kind")?,
                    place: text("place")?,
                    id: text("original_id")?,
                    at: time("original_at")?,
                },
                payload: row.try_get("payload")?,
                headers: headers_of(&text("headers")?).map_err(sqlx::Error::Decode)?,
                fault: LetterFault { reason: text("reason")?, message: row.try_get("message")? },
                at: Millis(row.try_get("at")?),
                attempts: attempts_of(&text("attempts")?).map_err(sqlx::Error::Decode)?,
                trace: row.try_get("trace")?,
            };
            let mut letter = DeadLetter::new(record);
            letter.status = status;
            letter.deleted_at = time("deleted_at")?;
            letter.replays = replays_of(&text("replays")?).map_err(sqlx::Error::Decode)?;
            letter.claims = u64::try_from(row.try_get::<i64, _>("claims")?).unwrap_or_default();
            letter.claim = match (row.try_get("claim_key")?, time("claim_until")?) {
                (Some(key), Some(until)) => Some(ReplayClaim { number: letter.claims, key, until }),
                _ => None,
            };
            letter.copy_of = row.try_get("copy_of")?;
            letter.superseded_by = row.try_get("superseded_by")?;
            Ok(letter)
        }

        fn push_filter(query: &mut QueryBuilder<$database>, filter: &Filter) {
            let filter = clean_filter(filter);
            query.push(if filter.deleted { " WHERE deleted_at IS NOT NULL" } else { " WHERE deleted_at IS NULL" });
            let texts = [
                (" AND kind = ", filter.kind.as_deref()),
                (" AND place = ", filter.place.as_deref()),
                (" AND reason = ", filter.reason.as_deref()),
                (" AND status = ", filter.status.map(Status::name)),
            ];
            for (condition, value) in texts {
                if let Some(value) = value {
                    query.push(condition).push_bind(value.to_owned());
                }
            }
            for (condition, value) in [(" AND at >= ", filter.from), (" AND at < ", filter.until)] {
                if let Some(value) = value {
                    query.push(condition).push_bind(value.0);
                }
            }
            if let Some(needle) = filter.needle() {
                query.push(concat!(" AND ", $position, "(searched, ")).push_bind(needle).push(") > 0");
            }
        }

        impl DeadLetterStore for $name {
            fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
                Box::pin(async move {
                    let failed = store_error("keeping a dead letter");
                    let mut transaction = $begin(&self.pool).await.map_err(failed)?;
                    let outcome = put(&mut transaction, record).await.map_err(failed)?;
                    transaction.commit().await.map_err(failed)?;
                    Ok(outcome)
                })
            }

            fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
                Box::pin(async move {
                    let failed = store_error("reading a dead letter");
                    let mut query = QueryBuilder::<$database>::new("SELECT ");
                    query.push(COLUMNS).push(" FROM seawall_dead_letters WHERE id = ").push_bind(clean_id(id));
                    let row = query.build().fetch_optional(&self.pool).await.map_err(failed)?;
                    row.as_ref().map(letter_of).transpose().map_err(failed)
                })
            }

            fn list<'a>(
                &'a self,
                filter: &'a Filter,
                order: LetterOrder,
                after: Option<&'a Cursor>,
                limit: u32,
            ) -> StoreFuture<'a, Page> {
                Box::pin(async move {
                    let failed = store_error("listing dead letters");
                    let mut query = QueryBuilder::<$database>::new("SELECT ");
                    query.push(COLUMNS).push(" FROM seawall_dead_letters");
                    push_filter(&mut query, filter);
                    let (is_after, sorted) = order_sql(order);
                    if let Some(Cursor { at, id }) = after {
                        if let Some(not_before) = not_before_sql(order) {
                            query.push(not_before).push_bind(at.0);
                        }
                        query.push(is_after).push_bind(at.0).push(", ").push_bind(clean_id(id)).push(")");
                    }
                    query.push(sorted).push_bind(i64::from(limit) + 1);
                    let rows = query.build().fetch_all(&self.pool).await.map_err(failed)?;
                    let letters: Result<Vec<DeadLetter>, sqlx::Error> = rows.iter().map(letter_of).collect();
                    Ok(Page::of_rows(letters.map_err(failed)?, order, limit))
                })
            }

            fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
                Box::pin(async move {
                    let failed = store_error("counting dead letters");
                    let mut query = QueryBuilder::<$database>::new(
                        "SELECT kind, place, reason, status, count(*) AS number, min(at) AS oldest FROM seawall_dead_letters",
                    );
                    push_filter(&mut query, filter);
                    query.push(" GROUP BY kind, place, reason, status ORDER BY number DESC LIMIT ").push_bind(i64::from(limit));
                    let rows = query.build().fetch_all(&self.pool).await.map_err(failed)?;
                    let group = |row: &$row| {
                        let status = row.try_get::<String, _>("status")?.parse::<Status>();
                        Ok(GroupCount {
                            kind: row.try_get("kind")?,
                            place: row.try_get("place")?,
                            reason: row.try_get("reason")?,
                            status: status.map_err(|error| sqlx::Error::Decode(error.into()))?,
                            count: u64::try_from(row.try_get::<i64, _>("number")?).unwrap_or_default(),
                            oldest: Millis(row.try_get("oldest")?),
                        })
                    };
                    rows.iter().map(group).collect::<Result<_, sqlx::Error>>().map_err(failed)
                })
            }

            fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
                Box::pin(async move {
                    let changed = self.update(id, ChangeOutcome::Absent, move |letter, now| apply(letter, change, now));
                    changed.await.map_err(store_error("changing a dead letter"))
                })
            }

            fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
                Box::pin(async move {
                    self.copied(id, edit, copy_id).await.map_err(store_error("copying a dead letter"))
                })
            }

            fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
                Box::pin(async move {
                    let request = clean_request(request);
                    let start =
                        self.update(id, ReplayStart::Absent, |letter, now| begin_replay(letter, &request, now));
                    start.await.map_err(store_error("claiming a dead letter"))
                })
            }

            fn finish_replay<'a>(
                &'a self,
                id: &'a str,
                claim: u64,
                failure: Option<&'a FailedReplay>,
            ) -> StoreFuture<'a, bool> {
                Box::pin(async move {
                    let failure = failure.map(|failure| FailedReplay {
                        error: clean_text(&failure.error),
                        took: failure.took,
                    });
                    let recorded = self
                        .update(id, false, |letter, now| finish_replay(letter, claim, failure.as_ref(), now))
                        .await;
                    recorded.map_err(store_error("recording a replay"))
                })
            }

            fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
                Box::pin(async move {
                    // The condition comes twice: a letter may be restored between the look at it and its deletion.
                    const PURGE: &str = concat!(
                        "DELETE FROM seawall_dead_letters WHERE id IN (SELECT id FROM seawall_dead_letters WHERE ",
                        "deleted_at <= ", $now, " - $1 OR (status = 'replayed' AND replayed_at <= ", $now, " - $2) LIMIT $3) ",
                        "AND (deleted_at <= ", $now, " - $1 OR (status = 'replayed' AND replayed_at <= ", $now, " - $2))"
                    );
                    let result = sqlx::query(PURGE)
                        .bind(millis(deleted))
                        .bind(millis(replayed))
                        .bind(i64::from(limit))
                        .execute(&self.pool)
                        .await;
                    result.map(|result| result.rows_affected()).map_err(store_error("purging dead letters"))
                })
            }
        }
    };
}
