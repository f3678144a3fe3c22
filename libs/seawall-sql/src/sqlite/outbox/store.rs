//! The outbox as the store of a relay.

use std::time::Duration;

use seawall_dist::outbox::{
    Batch, BatchLease, BatchRequest, OutboxRow, OutboxStore, Retention, RowOutcome, Stats,
};
use seawall_dist::{Message, StoreFuture};
use sqlx::Row;

use super::claim::{COLUMNS, claim, has_due, row_of};
use super::record::record;
use super::{SqliteOutbox, json, millis, now};
use crate::fault::store_error;
use crate::sqlite::begin;

impl OutboxStore for SqliteOutbox {
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
            if !has_due(&self.pool).await.map_err(failed)? {
                return Ok(None);
            }
            let mut transaction = begin(&self.pool).await.map_err(failed)?;
            let batch = claim(&mut transaction, request).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            Ok(batch)
        })
    }

    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let renewed = sqlx::query(concat!(
                "UPDATE seawall_outbox_lanes SET leased_until = ",
                sqlite_sql!(now),
                " + ? WHERE token = ?"
            ));
            let renewed = renewed.bind(millis(duration)).bind(lease.token).execute(&self.pool).await;
            let renewed = renewed.map_err(store_error("renewing a lease of the outbox"))?;
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
            let mut transaction = begin(&self.pool).await.map_err(failed)?;
            let recorded = record(&mut transaction, lease, outcomes, retention).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            Ok(recorded)
        })
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        Box::pin(async {
            let row = sqlx::query(concat!(
                "SELECT count(*), max(0, coalesce(",
                sqlite_sql!(now),
                " - min(created_at), 0)),
                    (SELECT count(*) FROM seawall_outbox WHERE status = 'dead')
                 FROM seawall_outbox WHERE status = 'ready'"
            ));
            let row = row.fetch_one(&self.pool).await.map_err(store_error("counting rows of the outbox"))?;
            let number = |column: usize| u64::try_from(row.get::<i64, _>(column)).unwrap_or(0);
            Ok(Stats::new(number(0), Duration::from_millis(number(1)), number(2)))
        })
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        Box::pin(async move {
            let query = format!(
                "SELECT {COLUMNS} FROM seawall_outbox WHERE status = 'dead' AND id > ? ORDER BY id LIMIT ?"
            );
            let rows =
                sqlx::query(sqlx::AssertSqlSafe(query)).bind(after).bind(limit).fetch_all(&self.pool).await;
            Ok(rows.map_err(store_error("listing dead rows of the outbox"))?.iter().map(row_of).collect())
        })
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        let statement = concat!("UPDATE seawall_outbox SET status = 'ready', retry_count = 0, failure_count = 0, outage_count = 0, finished_at = NULL,
                due_at = ", sqlite_sql!(now), "
             WHERE status = 'dead' AND id IN (SELECT value FROM json_each(?))");
        Box::pin(async move {
            let done = sqlx::query(statement).bind(json(ids)).execute(&self.pool).await;
            done.map(|done| done.rows_affected()).map_err(store_error("releasing rows of the outbox"))
        })
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        let statement =
            "DELETE FROM seawall_outbox WHERE status = 'dead' AND id IN (SELECT value FROM json_each(?))";
        Box::pin(async move {
            let done = sqlx::query(statement).bind(json(ids)).execute(&self.pool).await;
            done.map(|done| done.rows_affected()).map_err(store_error("discarding rows of the outbox"))
        })
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let failed = store_error("cleaning up the outbox");
            let mut transaction = begin(&self.pool).await.map_err(failed)?;
            let before = now(&mut transaction).await.map_err(failed)? - millis(age);
            let done = sqlx::query(
                "DELETE FROM seawall_outbox WHERE id IN (
                    SELECT id FROM seawall_outbox WHERE status = 'published' AND finished_at < ? ORDER BY finished_at LIMIT ?)",
            );
            let done = done.bind(before).bind(limit).execute(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            Ok(done.rows_affected())
        })
    }
}
