//! The consumer of an application.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lapin::message::Delivery as ReceivedDelivery;
use seawall::Clock;
use seawall_dist::messaging::{AttemptFailure, Delivery, Disposition, FailureEvidence, MessageProcessor};

use super::config::AmqpConsumerBuilder;
use super::forward::Forward;
use super::log::SubscriptionLog;
use super::subscription::{Subscription, WorkTerms, Worker};
use crate::connection::AmqpConnection;
use crate::message::{delivery_count, message_of, passed_on};
use crate::publish::Channels;
use crate::topology::{DEAD_LETTER_EXCHANGE, QueueTopology, TopologyError};

/// Consumes a queue: each message is processed, and then acknowledged, attempted again after a wait, or given up into the dead
/// letter queue. A handle: clones share everything.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_amqp::AmqpConnection;
/// use seawall_amqp::consume::AmqpConsumer;
/// use seawall_amqp::topology::QueueTopology;
/// use seawall_dist::messaging::{Delivery, HandlerError, MessageProcessor};
///
/// async fn book(delivery: Arc<Delivery>) -> Result<(), HandlerError> {
///     let text = std::str::from_utf8(delivery.message().payload()).map_err(HandlerError::invalid)?;
///     println!("booking {text}");
///     Ok(())
/// }
/// let connection = AmqpConnection::new("amqp://guest:guest@127.0.0.1:5672/%2f")?;
/// let queues = QueueTopology::builder("billing", "order-paid").bind("events", "order.paid").build()?;
/// let processor = MessageProcessor::builder("RabbitMQ-Consumer", seawall_amqp::SYSTEM, book).build()?;
/// let consumer = AmqpConsumer::builder(connection, queues, processor).build()?;
/// consumer.run_until(async { /* until SIGTERM */ }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AmqpConsumer {
    subscription: Subscription,
    work: Arc<MessageWork>,
}

impl AmqpConsumer {
    /// Configures a consumer of these queues. The component of the processor is `RabbitMQ-Consumer` by convention.
    pub fn builder(
        connection: AmqpConnection,
        topology: QueueTopology,
        processor: MessageProcessor,
    ) -> AmqpConsumerBuilder {
        AmqpConsumerBuilder::new(connection, topology, processor)
    }

    pub(super) fn from_builder(builder: AmqpConsumerBuilder) -> Self {
        let queue = builder.topology.queue().to_owned();
        let log = SubscriptionLog { component: builder.component, queue: queue.clone() };
        let work = Arc::new(MessageWork {
            topology: builder.topology.clone(),
            processor: builder.processor,
            channels: Channels::new(builder.connection.clone()),
            hold_max: builder.hold_max,
            clock: Clock::system(),
            log: log.clone(),
        });
        let subscription = Subscription {
            connection: builder.connection,
            topology: builder.topology,
            queue,
            concurrency: builder.concurrency,
            prefetch: builder.prefetch,
            is_careful: true,
            stop_timeout: builder.stop_timeout,
            log,
        };
        AmqpConsumer { subscription, work }
    }

    /// Declares the queues and consumes until the future ends: then it asks for nothing more, finishes what it has, and gives back
    /// what it can't finish in time. A connection that is lost is made again.
    ///
    /// # Errors
    /// Returns an error if the server refuses at the beginning what no other attempt helps: credentials, or queues that exist with
    /// other arguments.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Result<(), TopologyError> {
        self.subscription.run(self.work.clone(), shutdown).await
    }

    /// The queues that are consumed.
    #[must_use]
    pub fn topology(&self) -> &QueueTopology {
        &self.subscription.topology
    }
}

/// What is done with each message.
struct MessageWork {
    topology: QueueTopology,
    processor: MessageProcessor,
    /// For messages that are passed on. They go over the publishers' connection, so that acknowledgements pass also while the
    /// server blocks publishers.
    channels: Channels,
    hold_max: Duration,
    clock: Clock,
    log: SubscriptionLog,
}

impl Worker for MessageWork {
    async fn work(self: Arc<Self>, mut received: ReceivedDelivery, terms: WorkTerms) {
        let message = message_of(&mut received, self.topology.queue());
        let evidence = FailureEvidence::from_headers(message.headers());
        // Failures that a consumer recorded, and deliveries that ended without a word, count together.
        let attempt =
            evidence.attempts().saturating_add(delivery_count(&received.properties)).saturating_add(1);
        let has_id = !message.event_id().is_empty();
        let mut delivery = Delivery::new(message, self.topology.queue(), attempt);
        if has_id {
            // A tag means nothing outside of its channel, so it must not stand in for an id.
            delivery = delivery.with_position("deliveryTag", received.delivery_tag);
        }
        let delivery = Arc::new(delivery);
        let message = delivery.message();
        let mut forward = Forward {
            delivery: &received,
            event_id: message.event_id(),
            payload: message.payload(),
            log: &self.log,
            stop: terms.stop,
        };
        let received_at = self.clock.precise();
        let hold_max = if terms.is_alone { Duration::ZERO } else { self.hold_max };
        loop {
            match self.processor.process(delivery.clone()).await {
                Disposition::Acknowledge => return forward.acknowledge().await,
                Disposition::Release { after } => {
                    // The queue would count a message that is given back as one that failed, so it is held.
                    if self.clock.precise().since(received_at) + after > hold_max {
                        return self.retry(&mut forward, after, evidence, None).await;
                    }
                    if !forward.waits(after).await {
                        return forward.give_back().await;
                    }
                }
                Disposition::Retry { after, failure } => {
                    return self.retry(&mut forward, after, evidence, Some(failure)).await;
                }
                Disposition::DeadLetter { reason, failure } => {
                    let mut evidence = evidence;
                    evidence.set_reason(reason);
                    return self.give_up(&mut forward, evidence, failure).await;
                }
                // Whatever it is, the message is not lost by it.
                _ => return forward.give_back().await,
            }
        }
    }
}

impl MessageWork {
    /// Puts the message into the queue for this wait.
    async fn retry(
        &self,
        forward: &mut Forward<'_>,
        after: Duration,
        mut evidence: FailureEvidence,
        failure: Option<AttemptFailure>,
    ) {
        evidence.set_origin(self.topology.queue(), "");
        if let Some(failure) = failure {
            evidence.add(failure);
        }
        let properties = passed_on(&forward.delivery.properties, &evidence);
        let queue = self.topology.retry_queue(after);
        if let Err(error) = forward.pass_on(&self.channels, "", &queue, properties).await {
            self.log.not_forwarded(forward.event_id, &queue, after, &error);
            forward.reject().await;
        }
    }

    /// Puts the message into the dead letter queue with its evidence. If the server does not take it like that, it puts the message
    /// there itself, as it came.
    async fn give_up(
        &self,
        forward: &mut Forward<'_>,
        mut evidence: FailureEvidence,
        failure: Option<AttemptFailure>,
    ) {
        evidence.set_origin(self.topology.queue(), "");
        if let Some(failure) = failure {
            evidence.add(failure);
        }
        let properties = passed_on(&forward.delivery.properties, &evidence);
        let key = self.topology.dead_letter_queue();
        if let Err(error) = forward.pass_on(&self.channels, DEAD_LETTER_EXCHANGE, key, properties).await {
            self.log.not_forwarded(forward.event_id, key, Duration::ZERO, &error);
            forward.reject().await;
        }
    }
}

impl fmt::Debug for AmqpConsumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpConsumer").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}
