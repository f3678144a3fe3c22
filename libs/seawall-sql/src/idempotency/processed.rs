//! The table `processed_events`, written once for both databases.

/// Writes the functions on processed events for one database.
macro_rules! processed_events {
    (
        $(#[$concurrency:meta])*
        events on $pool:ident, $connection:ident;
        sql $sql:ident;
    ) => {
        use std::time::Duration;

        use seawall::fault::{Fault, Ran};
        use seawall_dist::StoreError;

        use crate::fault::store_error;
        use crate::idempotency::{check_event_id, millis};

        /// Records in the caller's transaction that an event (a UUID) is processed. False if it was processed before: skip its work.
        ///
        /// The event is processed if the transaction commits, and is not if it rolls back. An event that was processed before does not
        /// fail the transaction.
        $(#[$concurrency])*
        ///
        /// Every handler in this database that works on events of its own needs a name: see [`record_processed_by`]. Without one, the
        /// second handler of an event would skip it because the first has processed it.
        pub async fn record_processed(connection: &mut $connection, event_id: &str) -> Result<bool, StoreError> {
            record_processed_by(connection, "", event_id).await
        }

        /// Like [`record_processed`], for one of several consumers in the same database: each of them processes an event once.
        pub async fn record_processed_by(
            connection: &mut $connection,
            consumer: &str,
            event_id: &str,
        ) -> Result<bool, StoreError> {
            const ACTION: &str = "recording a processed event";
            check_event_id(event_id)
                .map_err(|error| StoreError::new(ACTION, Fault::business().ran(Ran::No), error))?;
            let insert = concat!("INSERT INTO processed_events (consumer, event_id) VALUES ($1, ", $sql!(uuid "$2"), ") ON CONFLICT DO NOTHING");
            let done = sqlx::query(insert).bind(consumer).bind(event_id).execute(connection).await;
            done.map(|done| done.rows_affected() > 0).map_err(store_error(ACTION))
        }

        /// Deletes at most `limit` events that were processed longer ago than this, and returns their number.
        pub async fn remove_processed(pool: &$pool, older_than: Duration, limit: u32) -> Result<u64, StoreError> {
            let removed = sqlx::query(
                concat!("DELETE FROM processed_events WHERE (event_id, consumer) IN (
                     SELECT event_id, consumer FROM processed_events
                     WHERE processed_at <= ", $sql!(clock), " - ", $sql!(interval "$1"), " LIMIT $2)"),
            )
            .bind(millis(older_than))
            .bind(i64::from(limit))
            .execute(pool)
            .await;
            removed.map(|done| done.rows_affected()).map_err(store_error("removing processed events"))
        }
    };
}
