//! Messages that are stored with the data they tell of, and published later.
#![doc = ""]
#![doc = include_str!("../../../docs/outbox.md")]

mod claim;
mod record;
mod store;

use seawall_dist::outbox::lane_of;
use seawall_dist::{Message, StoreError};
use sqlx::sqlite::{SqliteConnection, SqlitePool};

use crate::duration::millis;
use crate::fault::store_error;
use crate::outbox_row::{check_message, headers_text};

/// An outbox on SQLite: writes rows in the user's own transactions, and is the store of a relay.
///
/// SQLite has one writer at a time: a relay's statements wait for the user's transactions and the other way round. Begin
/// transactions that write with `BEGIN IMMEDIATE`.
#[derive(Clone, Debug)]
pub struct SqliteOutbox {
    pool: SqlitePool,
}

impl SqliteOutbox {
    /// Creates an outbox on the tables of the migration `0003_outbox`.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        SqliteOutbox { pool }
    }

    /// Writes a message in the caller's transaction: `outbox.enqueue(&mut transaction, &message)`. It is published if and
    /// only if the transaction commits. A message that can't be stored is refused before it is sent, and the transaction goes on.
    pub async fn enqueue(
        &self,
        connection: &mut SqliteConnection,
        message: &Message,
    ) -> Result<(), StoreError> {
        check_message(message)?;
        sqlx::query(
            "INSERT INTO seawall_outbox (event_id, event_type, topic, aggregate_id, payload, headers, lane) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(message.event_id())
        .bind(message.event_type())
        .bind(message.topic())
        .bind(message.aggregate_id())
        .bind(message.payload())
        .bind(headers_text(message))
        .bind(lane_of(message.topic(), message.aggregate_id()))
        .execute(connection)
        .await
        .map(drop)
        .map_err(store_error("writing to the outbox"))
    }

    /// Writes messages in the caller's transaction. Their order is that of the slice.
    pub async fn enqueue_all(
        &self,
        connection: &mut SqliteConnection,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        for message in messages {
            self.enqueue(connection, message).await?;
        }
        Ok(())
    }
}

/// The time of the database in milliseconds, once per transaction.
async fn now(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(concat!("SELECT ", sqlite_sql!(now))).fetch_one(connection).await
}

/// Numbers as a JSON array, which SQLite takes as one parameter.
fn json<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(","))
}
