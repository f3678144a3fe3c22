//! The outbox as the store of a relay.

use std::borrow::Cow;
use std::time::Duration;

use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, OutboxRow, OutboxStore, OutcomeKind, PARKED_MAX, PARKED_TIME, Retention,
    RowOutcome, Stats, WOKEN_MAX,
};
use seawall_dist::{Message, Millis, StoreFuture};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgListener, PgRow};

use super::walk::LaneSearch;
use super::{CHANNEL, PostgresOutbox, statements};
use crate::duration::seconds;
use crate::fault::store_error;
use crate::outbox_row::message;
use crate::postgres::begin;
use crate::text::error_text;
use crate::transaction::begin_with;

async fn lease(
    connection: &mut PgConnection,
    request: &BatchRequest,
    search: LaneSearch,
) -> Result<Option<BatchLease>, sqlx::Error> {
    let statement = if search == LaneSearch::KnownOnly { statements::LEASE_SHORT } else { statements::LEASE };
    let rows = sqlx::query(statement)
        // Planned each time: the table is empty in one second and large in the next.
        .persistent(false)
        .bind(seconds(request.lease))
        .bind(i64::from(request.lanes_max))
        .bind(&request.owner)
        .fetch_all(connection)
        .await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let token = first.get(0);
    Ok(Some(BatchLease::new(token, rows.iter().map(|row| row.get(1)).collect())))
}

async fn rows_of(
    connection: &mut PgConnection,
    lease: &BatchLease,
    rows_max: u32,
    search: LaneSearch,
) -> Result<Vec<OutboxRow>, sqlx::Error> {
    let per_lane = i64::from(rows_max.div_ceil(lease.lanes.len().max(1) as u32));
    let rows = sqlx::query(statements::CLAIM)
        .persistent(false)
        .bind(&lease.lanes)
        .bind(lease.token)
        .bind(i32::try_from(rows_max).unwrap_or(i32::MAX))
        .bind(per_lane)
        .bind(seconds(PARKED_TIME))
        .bind(search == LaneSearch::KnownOnly)
        .bind(i64::from(PARKED_MAX))
        .fetch_all(connection)
        .await?;
    let mut rows: Vec<OutboxRow> = rows.iter().map(row_of).collect();
    rows.sort_unstable_by_key(|row| row.id);
    Ok(rows)
}

impl PostgresOutbox {
    async fn listen(&self) -> Result<(), sqlx::Error> {
        let mut shared = self.listener.lock().await;
        let listener = match &mut *shared {
            Some(listener) => listener,
            none => {
                let mut listener = PgListener::connect_with(&self.pool).await?;
                listener.listen(CHANNEL).await?;
                none.insert(listener)
            }
        };
        let heard = listener.recv().await;
        // Hints that came together are one.
        while listener.next_buffered().is_some() {}
        if heard.is_err() {
            *shared = None;
        }
        heard.map(drop)
    }
}

fn row_of(row: &PgRow) -> OutboxRow {
    let message = message(row.get(1), row.get(2), row.get(3), row.get(4), row.get(6), row.get(5));
    let mut stored = OutboxRow::new(row.get(0), message, Millis(row.get(10)));
    let count = |column: usize| u32::try_from(row.get::<i32, _>(column)).unwrap_or(0);
    (stored.attempts, stored.failures, stored.last_error) = (count(7), count(8), row.get(9));
    stored.outages = count(11);
    stored
}

/// The outcomes as columns, for one statement.
#[derive(Default)]
struct Columns<'a> {
    published: Vec<i64>,
    failed: (Vec<i64>, Vec<f64>, Vec<Cow<'a, str>>, Vec<bool>),
    returned: (Vec<i64>, Vec<f64>),
    dead: (Vec<i64>, Vec<Cow<'a, str>>),
}

impl<'a> Columns<'a> {
    fn of(outcomes: &'a [RowOutcome]) -> Self {
        let mut columns = Columns::default();
        for RowOutcome { id, kind } in outcomes {
            match kind {
                OutcomeKind::Published => columns.published.push(*id),
                OutcomeKind::Failed { delay, error, outage } => {
                    columns.failed.0.push(*id);
                    columns.failed.1.push(seconds(*delay));
                    columns.failed.2.push(error_text(error));
                    columns.failed.3.push(*outage);
                }
                OutcomeKind::Returned { delay } => {
                    columns.returned.0.push(*id);
                    columns.returned.1.push(seconds(*delay));
                }
                OutcomeKind::Dead { error } => {
                    columns.dead.0.push(*id);
                    columns.dead.1.push(error_text(error));
                }
                // A kind of a later release: the row stays as it is.
                _ => {}
            }
        }
        columns
    }
}

impl OutboxStore for PostgresOutbox {
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let failed = store_error("writing to the outbox");
            let mut transaction = begin(&self.pool).await.map_err(failed)?;
            self.enqueue_all(&mut transaction, messages).await?;
            transaction.commit().await.map_err(failed)
        })
    }

    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        Box::pin(async move {
            let failed = store_error("claiming rows of the outbox");
            // The claim must see what was committed after the lease's own statement began.
            let mut transaction = begin_with(&self.pool, statements::BEGIN_CLAIM).await.map_err(failed)?;
            let (search, began) = (self.walks.next_search(&self.pool), self.walks.now());
            let lease = lease(&mut transaction, request, search).await.map_err(failed)?;
            if search == LaneSearch::Walk {
                self.walks.took(self.walks.now().since(began));
            }
            let batch = match lease {
                Some(lease) => {
                    let rows =
                        rows_of(&mut transaction, &lease, request.rows_max, search).await.map_err(failed)?;
                    Some(Batch::new(lease, rows))
                }
                None => None,
            };
            transaction.commit().await.map_err(failed)?;
            Ok(batch)
        })
    }

    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let renewed = sqlx::query(statements::RENEW)
                .bind(&lease.lanes)
                .bind(lease.token)
                .bind(seconds(duration))
                .execute(&self.pool)
                .await
                .map_err(store_error("renewing a lease of the outbox"))?;
            Ok(renewed.rows_affected() == lease.lanes.len() as u64)
        })
    }

    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        retention: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        Box::pin(async move {
            let failed = store_error("recording outcomes of the outbox");
            if outcomes.is_empty() {
                let end = sqlx::query(statements::END).bind(&lease.lanes).bind(lease.token);
                return end.execute(&self.pool).await.map(|_| Vec::new()).map_err(failed);
            }
            let columns = Columns::of(outcomes);
            let recorded = sqlx::query_scalar(statements::RECORD)
                .persistent(false)
                .bind(&lease.lanes)
                .bind(lease.token)
                .bind(columns.published)
                .bind(retention != Retention::Delete)
                .bind(columns.failed.0)
                .bind(columns.failed.1)
                .bind(columns.failed.2)
                .bind(columns.returned.0)
                .bind(columns.returned.1)
                .bind(columns.dead.0)
                .bind(columns.dead.1)
                .bind(i64::from(WOKEN_MAX))
                .bind(columns.failed.3);
            recorded.fetch_all(&self.pool).await.map_err(failed)
        })
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        Box::pin(async {
            let row = sqlx::query(statements::STATS).fetch_one(&self.pool).await;
            let row = row.map_err(store_error("counting rows of the outbox"))?;
            let count = |column: usize| u64::try_from(row.get::<i64, _>(column)).unwrap_or(0);
            Ok(Stats::new(count(0), Duration::from_secs_f64(row.get::<f64, _>(1).max(0.0)), count(2)))
        })
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        Box::pin(async move {
            let query = sqlx::query(statements::LIST_DEAD).bind(after).bind(i64::from(limit));
            let rows =
                query.fetch_all(&self.pool).await.map_err(store_error("listing dead rows of the outbox"))?;
            Ok(rows.iter().map(row_of).collect())
        })
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let done = sqlx::query(statements::RELEASE).bind(ids).execute(&self.pool).await;
            done.map(|done| done.rows_affected()).map_err(store_error("releasing rows of the outbox"))
        })
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let done = sqlx::query(statements::DISCARD).bind(ids).execute(&self.pool).await;
            done.map(|done| done.rows_affected()).map_err(store_error("discarding rows of the outbox"))
        })
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let query = sqlx::query(statements::CLEAN_UP).bind(seconds(age)).bind(i64::from(limit));
            let done = query.execute(&self.pool).await;
            done.map(|done| done.rows_affected()).map_err(store_error("cleaning up the outbox"))
        })
    }

    fn hint(&self) -> StoreFuture<'_, ()> {
        if !self.notify {
            return Box::pin(std::future::pending());
        }
        Box::pin(async { self.listen().await.map_err(store_error("listening to the outbox")) })
    }
}
