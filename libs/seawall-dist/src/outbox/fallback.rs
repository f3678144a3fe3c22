//! Publishes now, and stores for later when the broker is away.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::fault::Verdict;
use seawall::{Fault, Guard};
use tokio::time::timeout;

use super::config::PUBLISH_TIMEOUT;
use super::store::OutboxStore;
use crate::{Message, PublishError, Publisher, StoreError};

/// A publisher that stores a message in an outbox when the broker can't take it.
///
/// This is the weaker form of an outbox: a process that dies between its commit and this call loses the message. Where that
/// matters, write the row in the transaction itself.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_dist::outbox::{FallbackPublisher, MemoryOutbox, PublishedBy};
/// use seawall_dist::{Message, PublishError, PublishFuture, Publisher};
/// use std::sync::Arc;
///
/// struct DownBroker;
/// impl Publisher for DownBroker {
///     fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
///         let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
///         Box::pin(async move { messages.iter().map(|_| Err(PublishError::of(&refused))).collect() })
///     }
/// }
/// let outbox = Arc::new(MemoryOutbox::new());
/// let publisher = FallbackPublisher::new("Kafka-Publisher", Arc::new(DownBroker), outbox.clone());
/// let by = publisher.publish(&Message::new("OrderCreated", "order-17", "{}")).await?;
/// assert_eq!(by, PublishedBy::Outbox);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FallbackPublisher {
    name: Arc<str>,
    publisher: Arc<dyn Publisher>,
    store: Arc<dyn OutboxStore>,
    guard: Option<Guard>,
    timeout: Duration,
}

/// The time limit of storing a message in the outbox instead of publishing it.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a message went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublishedBy {
    /// The broker has it.
    Broker,
    /// The outbox has it, and a relay publishes it later.
    Outbox,
}

impl FallbackPublisher {
    /// Creates a publisher. The name stands in its log lines, such as `Kafka-Publisher`.
    pub fn new(name: &str, publisher: Arc<dyn Publisher>, store: Arc<dyn OutboxStore>) -> Self {
        FallbackPublisher { name: name.into(), publisher, store, guard: None, timeout: PUBLISH_TIMEOUT }
    }

    /// Sets the time limit of publishing without a guard; [`PUBLISH_TIMEOUT`] unless told. A broker that takes longer counts as
    /// one that is away.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Publishes through a guard: with its timeout, its retries, and a circuit that spares a broker that is down.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Publishes the message, or stores it if the broker can't take it now.
    ///
    /// A fault that another attempt does not help (a message that is too large, a topic that does not exist) is not stored:
    /// the relay would fail with it too.
    pub async fn publish(&self, message: &Message) -> Result<PublishedBy, FallbackError> {
        let Err(error) = self.publish_now(message).await else { return Ok(PublishedBy::Broker) };
        let fault = error.fault();
        if !fault.is_transient() && fault.verdict() != Verdict::Rejected {
            return Err(FallbackError::Refused(error));
        }
        self.log_fallback(message, &error);
        let too_late = |_| Err(StoreError::without_cause("writing to the outbox in time", Fault::timeout()));
        let stored = timeout(STORE_TIMEOUT, self.store.store(std::slice::from_ref(message))).await;
        match stored.unwrap_or_else(too_late) {
            Ok(()) => {
                self.log_saved(message);
                Ok(PublishedBy::Outbox)
            }
            Err(store) => {
                self.log_loss(message, &error, &store);
                Err(FallbackError::DataLossRisk { publish: error, store })
            }
        }
    }

    async fn publish_now(&self, message: &Message) -> Result<(), PublishError> {
        let Some(guard) = &self.guard else {
            let too_late = |_| Err(PublishError::new(Fault::timeout(), "the broker did not answer in time"));
            return timeout(self.timeout, self.attempt(message)).await.unwrap_or_else(too_late);
        };
        // Consumers recognise a repeated message by its event id.
        let result = guard.idempotent().call(|_| self.attempt(message)).await;
        result.map_err(|error| {
            // To a guard further out, a call whose retries are used up is not to be retried. Here the question is whether the broker
            // may take the message later, which the last attempt says, unless nothing was attempted.
            let is_refusal = error.fault().verdict() == Verdict::Rejected;
            let fault = if is_refusal { error.fault() } else { error.last_fault() };
            PublishError::new(fault, error.to_string())
        })
    }

    async fn attempt(&self, message: &Message) -> Result<(), PublishError> {
        let mut results = self.publisher.publish(std::slice::from_ref(message)).await;
        let missing = || Err(PublishError::new(Fault::system(), "the publisher returned no result"));
        results.pop().unwrap_or_else(missing)
    }

    fn log_fallback(&self, message: &Message, error: &PublishError) {
        let _ = (message, error);
        #[cfg(feature = "tracing")]
        {
            let is_open = error.fault().verdict() == Verdict::Rejected;
            let why = if is_open { "Circuit open" } else { "Broker unavailable" };
            tracing::error!(target: "seawall", traceId = super::telemetry::trace_id(message), aggregateId = message.aggregate_id(),
                eventType = message.event_type(), eventId = message.event_id(), triggerCause = %error, action = "QueueForRetry",
                "[{}][Fallback] {why}, saving to outbox.", self.name);
        }
    }

    fn log_saved(&self, message: &Message) {
        let _ = message;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", traceId = super::telemetry::trace_id(message), aggregateId = message.aggregate_id(),
            eventId = message.event_id(), "[{}][Outbox] Saved.", self.name);
    }

    fn log_loss(&self, message: &Message, publish: &PublishError, store: &StoreError) {
        let _ = (message, publish, store);
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", traceId = super::telemetry::trace_id(message), aggregateId = message.aggregate_id(),
            eventType = message.event_type(), eventId = message.event_id(), triggerCause = %publish, cause = %store,
            action = "ManualReview", "[{}][Outbox] Failed to store! Data loss risk!", self.name);
    }
}

impl fmt::Debug for FallbackPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackPublisher").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A message was neither published nor stored.
#[derive(Debug)]
#[non_exhaustive]
pub enum FallbackError {
    /// The broker refused the message for good. It was not stored, because another attempt would not help.
    Refused(PublishError),
    /// The broker is away, and the message could not be stored either: it is lost unless the caller keeps it.
    DataLossRisk {
        /// Why the message was not published.
        publish: PublishError,
        /// Why it was not stored.
        store: StoreError,
    },
}

impl fmt::Display for FallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FallbackError::Refused(_) => f.write_str("the broker refused the message"),
            FallbackError::DataLossRisk { publish, .. } => {
                write!(f, "data loss risk: the message was neither published ({publish}) nor stored")
            }
        }
    }
}

impl Error for FallbackError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            FallbackError::Refused(error) => Some(error),
            FallbackError::DataLossRisk { store, .. } => Some(store),
        }
    }
}
