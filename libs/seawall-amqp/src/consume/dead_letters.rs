//! Takes dead letters over into a store.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lapin::message::Delivery as ReceivedDelivery;
use seawall::Backoff;
use seawall_dist::messaging::{AttemptFailure, DeadLetterIntake, DeathReason, Delivery, FailureEvidence};
use seawall_dist::{Message, Millis};

use super::config::STOP_TIMEOUT;
use super::forward::Forward;
use super::log::SubscriptionLog;
use super::subscription::{Subscription, WorkTerms, Worker};
use crate::connection::{AmqpConnection, random_word};
use crate::message::{ServerDeath, message_of, server_death};
use crate::topology::{QueueTopology, TopologyError};

/// The wait after a store first refused a letter; each further one doubles it.
pub const INTAKE_WAIT: Duration = Duration::from_millis(200);

/// The longest wait while the store is away.
pub const INTAKE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The number of letters that are taken at the same time.
const LETTERS_AT_ONCE: usize = 4;

/// Reads a dead letter queue, and puts each message into [`DeadLetters`](seawall_dist::deadletter::DeadLetters), where it can be
/// searched, edited and replayed. A handle: clones share everything.
///
/// A message is acknowledged when the store has it. While the store is away it stays in the queue. To send letters back to their
/// queue, give a [`PublisherReplayer`](seawall_dist::messaging::PublisherReplayer) a publisher of the default exchange.
#[derive(Clone)]
pub struct AmqpDeadLetterReader {
    subscription: Subscription,
    work: Arc<LetterWork>,
}

impl AmqpDeadLetterReader {
    /// Creates a reader of the dead letter queue of this topology. By convention the intake is
    /// `DeadLetterIntake::new("amqp", "RabbitMQ-DLQ", letters)`.
    #[must_use]
    pub fn new(connection: AmqpConnection, topology: QueueTopology, intake: DeadLetterIntake) -> Self {
        let queue = topology.dead_letter_queue().to_owned();
        let log = SubscriptionLog { component: "RabbitMQ-DLQ".to_owned(), queue: queue.clone() };
        let work = LetterWork { intake, queue: queue.clone(), log: log.clone() };
        let subscription = Subscription {
            connection,
            topology,
            queue,
            concurrency: LETTERS_AT_ONCE,
            prefetch: LETTERS_AT_ONCE as u16,
            // A letter has no limit of deliveries.
            is_careful: false,
            stop_timeout: STOP_TIMEOUT,
            log,
        };
        AmqpDeadLetterReader { subscription, work: Arc::new(work) }
    }

    /// Declares the queues and reads until the future ends. A connection that is lost is made again.
    ///
    /// # Errors
    /// Returns an error if the server refuses at the beginning what no other attempt helps.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Result<(), TopologyError> {
        self.subscription.run(self.work.clone(), shutdown).await
    }
}

struct LetterWork {
    intake: DeadLetterIntake,
    queue: String,
    log: SubscriptionLog,
}

impl Worker for LetterWork {
    async fn work(self: Arc<Self>, mut received: ReceivedDelivery, terms: WorkTerms) {
        let message = message_of(&mut received, &self.queue);
        let message = match server_death(&received.properties) {
            Some(death) => with_server_evidence(message, &death),
            None => message,
        };
        // A letter without an id gets one, because nothing else tells it from the next. If the server delivers it again after a
        // crash, it is a second letter.
        let message = if message.event_id().is_empty() { with_new_id(&message) } else { message };
        let delivery = Delivery::new(message, self.queue.as_str(), 1)
            .with_position("deliveryTag", received.delivery_tag);
        let event_id = delivery.message().event_id();
        let mut forward =
            Forward { delivery: &received, event_id, payload: &[], log: &self.log, stop: terms.stop };
        let backoff = Backoff::exponential(INTAKE_WAIT).cap(INTAKE_WAIT_MAX);
        for failures in 0.. {
            let Err(error) = self.intake.take(&delivery).await else { return forward.acknowledge().await };
            let wait = backoff.wait(failures, Duration::ZERO, false, random_word());
            self.log.not_forwarded(event_id, "the store", wait, &error);
            if !forward.waits(wait).await {
                return forward.give_back().await;
            }
        }
    }
}

/// Adds what the server says about a message that it gave up itself. What a consumer wrote says more.
fn with_server_evidence(message: Message, death: &ServerDeath) -> Message {
    let mut evidence = FailureEvidence::from_headers(message.headers());
    if evidence.reason().is_some() {
        return message;
    }
    evidence.set_origin(&death.queue, "");
    let reason = match death.reason.as_str() {
        "delivery_limit" => DeathReason::Crashes,
        "rejected" => DeathReason::Refused,
        _ => DeathReason::Unknown,
    };
    evidence.set_reason(reason);
    evidence.add(AttemptFailure {
        attempt: evidence.attempts() + death.count,
        at: Millis(
            death
                .at_seconds
                .map_or(0, |seconds| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX)),
        ),
        took: Duration::ZERO,
        error: format!("RabbitMQ gave the message up: {}", death.reason),
    });
    with_headers(&message, evidence.apply(message.headers())).with_event_id(message.event_id())
}

fn with_new_id(message: &Message) -> Message {
    with_headers(message, message.headers().to_vec())
}

/// The same message with other headers and a new id.
fn with_headers(message: &Message, headers: Vec<(String, String)>) -> Message {
    let copy = Message::new(message.event_type(), message.aggregate_id(), message.payload())
        .with_topic(message.topic());
    headers.into_iter().fold(copy, |copy, (name, value)| copy.with_header(name, value))
}

impl fmt::Debug for AmqpDeadLetterReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpDeadLetterReader")
            .field("subscription", &self.subscription)
            .finish_non_exhaustive()
    }
}
