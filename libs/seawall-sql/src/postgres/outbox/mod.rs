//! Messages that are stored with the data they tell of, and published later.
#![doc = ""]
#![doc = include_str!("../../../docs/outbox.md")]

mod statements;
mod store;
mod walk;

pub use walk::WALK_LIMIT;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall_dist::{Message, StoreError};
use sqlx::postgres::{PgConnection, PgListener, PgPool};
use tokio::sync::Mutex;

use self::walk::Walks;
use crate::fault::store_error;
use crate::outbox_row::{check_message, headers_text};

/// The channel on which a hint comes that rows were stored.
pub const CHANNEL: &str = "seawall_outbox";

/// An outbox on PostgreSQL: writes rows in the user's own transactions, and is the store of a relay.
///
/// It is a handle: clones are the same outbox.
#[derive(Clone)]
pub struct PostgresOutbox {
    pool: PgPool,
    notify: bool,
    /// One listener for all relays of the process: a hint wakes one of them.
    listener: Arc<Mutex<Option<PgListener>>>,
    walks: Walks,
}

impl PostgresOutbox {
    /// Creates an outbox on the tables of the migration `0003_outbox`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        PostgresOutbox { pool, notify: false, listener: Arc::default(), walks: Walks::new() }
    }

    /// Adds a `NOTIFY` to every transaction that enqueues, and makes relays of this handle listen.
    ///
    /// A row is then claimed within milliseconds instead of at the next poll. The price: PostgreSQL lets transactions with a
    /// `NOTIFY` commit one after the other, so writers wait for each other's disk. Off by default; the polls go on either way.
    #[must_use]
    pub fn with_notify(mut self) -> Self {
        self.notify = true;
        self
    }

    /// How long the search for rows may take, several times in a row, before claims go a shorter way ([`WALK_LIMIT`]). The search is
    /// slow when a transaction is held open for long, because PostgreSQL then can't remove what was published. The shorter way
    /// finds rows whose transaction was open for more than a second, and the first rows of a topic, up to five seconds later;
    /// `Duration::MAX` never takes it.
    #[must_use]
    pub fn walk_limit(mut self, limit: Duration) -> Self {
        self.walks.limit = limit;
        self
    }

    /// Writes a message in the caller's transaction: `outbox.enqueue(&mut transaction, &message)`. It is published if and
    /// only if the transaction commits. A message that can't be stored is refused before it is sent, and the transaction goes on.
    pub async fn enqueue(&self, connection: &mut PgConnection, message: &Message) -> Result<(), StoreError> {
        let failed = store_error("writing to the outbox");
        check_message(message)?;
        sqlx::query(statements::ENQUEUE_ONE)
            .bind(message.event_id())
            .bind(message.event_type())
            .bind(message.topic())
            .bind(message.aggregate_id())
            .bind(message.payload())
            .bind(headers_text(message))
            .execute(&mut *connection)
            .await
            .map_err(failed)?;
        self.notify_in(connection).await
    }

    /// Writes messages in the caller's transaction, in one statement. Their order is that of the slice.
    pub async fn enqueue_all(
        &self,
        connection: &mut PgConnection,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        if messages.is_empty() {
            return Ok(());
        }
        messages.iter().try_for_each(check_message)?;
        let column = |of: fn(&Message) -> &str| messages.iter().map(of).collect::<Vec<_>>();
        sqlx::query(statements::ENQUEUE)
            .bind(column(Message::event_id))
            .bind(column(Message::event_type))
            .bind(column(Message::topic))
            .bind(column(Message::aggregate_id))
            .bind(messages.iter().map(Message::payload).collect::<Vec<_>>())
            .bind(messages.iter().map(headers_text).collect::<Vec<_>>())
            .execute(&mut *connection)
            .await
            .map_err(store_error("writing to the outbox"))?;
        self.notify_in(connection).await
    }

    /// Hints to all relays that listen, outside of any transaction. For writers that want the speed of a hint without its
    /// price: call it after the commit, as often as you like but not more often than you need.
    pub async fn hint_now(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(store_error("hinting at the outbox"))?;
        notify(&mut connection).await
    }

    async fn notify_in(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        if self.notify { notify(connection).await } else { Ok(()) }
    }
}

/// Within one transaction, PostgreSQL makes one notification of many that are alike.
async fn notify(connection: &mut PgConnection) -> Result<(), StoreError> {
    let done = sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(connection).await;
    done.map(drop).map_err(store_error("hinting at the outbox"))
}

impl fmt::Debug for PostgresOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOutbox").field("notify", &self.notify).finish_non_exhaustive()
    }
}
