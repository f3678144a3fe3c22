//! Publishes messages, and says of each whether the cluster has it.

use std::fmt;
use std::sync::Arc;

use rdkafka::error::KafkaError;
use rdkafka::producer::FutureRecord;
use rdkafka::producer::future_producer::DeliveryFuture;
use seawall::fault::Ran;
use seawall::{Clock, Fault, Guard, Tick};
use seawall_dist::messaging::PublishTelemetry;
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};

use crate::KafkaCluster;
use crate::batch::Batch;
use crate::producer::SharedProducer;
use crate::publisher_config::KafkaPublisherBuilder;
use crate::record::{headers_of, key_of, size_of};

/// Publishes messages to Kafka: idempotent, acknowledged by all replicas that are in sync, through a guard. It is a handle:
/// clones share the connections.
///
/// The aggregate id of a message is the key of its record, so that messages of one aggregate are in one partition, in the order
/// in which they were acknowledged. A result is `Ok` when the cluster has acknowledged the message. All messages of a call
/// travel at once.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_dist::{Message, Publisher};
/// use seawall_kafka::{KafkaCluster, KafkaPublisher};
/// let cluster = KafkaCluster::new("localhost:9092")?;
/// let publisher = KafkaPublisher::builder(&cluster).topic("orders").build()?;
/// for result in publisher.publish(&[Message::new("OrderPaid", "order-17", "{}")]).await {
///     result?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct KafkaPublisher {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) producer: SharedProducer,
    pub(crate) guard: Guard,
    pub(crate) topic: Option<String>,
    pub(crate) message_bytes_max: usize,
    pub(crate) telemetry: PublishTelemetry,
    pub(crate) clock: Clock,
}

impl KafkaPublisher {
    /// Chooses the topic, limits and the guard.
    pub fn builder(cluster: &KafkaCluster) -> KafkaPublisherBuilder {
        KafkaPublisherBuilder::new(cluster.clone())
    }

    /// The guard that every call passes.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.inner.guard
    }

    async fn publish_all(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let began = self.inner.clock.precise();
        let batch = Batch::new(messages, |message| self.inner.refusal_of(message));
        for message in messages {
            self.inner.telemetry.start(message);
        }
        if batch.is_open() {
            // Consumers recognise a message that was written twice by its event id.
            let call = self.inner.guard.idempotent().operation("publish");
            let result = call.call(|_| self.attempt(&batch, began)).await;
            if let Err(error) = result {
                batch.fill(|| self.inner.producer.explain_timeout(error.fault(), error.to_string()));
            }
        }
        let took = self.inner.clock.precise().since(began);
        let results = batch.into_results();
        for (message, result) in messages.iter().zip(&results) {
            if let Err(error) = result {
                self.inner.telemetry.failed(message, error, took);
            }
        }
        results
    }

    /// Sends what has no final result yet, and waits for the acknowledgements.
    async fn attempt(&self, batch: &Batch<'_>, began: Tick) -> Result<(), PublishError> {
        let mut sent = Vec::new();
        for index in batch.open() {
            match self.inner.enqueue(&batch.messages[index]).await {
                Ok(acknowledgement) => sent.push((index, acknowledgement)),
                Err(error) => batch.set(index, Err(self.inner.producer.explain(&error))),
            }
        }
        for (index, acknowledgement) in sent {
            let message = &batch.messages[index];
            let result = match acknowledgement.await {
                Ok(Ok(place)) => {
                    let took = self.inner.clock.precise().since(began);
                    self.inner.telemetry.acknowledged(
                        message,
                        Some(place.partition),
                        Some(place.offset),
                        took,
                    );
                    self.inner.producer.events().connected();
                    Ok(())
                }
                Ok(Err((error, _))) => Err(self.inner.producer.explain(&error)),
                Err(_) => Err(self.inner.producer.explain(&KafkaError::Canceled)),
            };
            batch.set(index, result);
        }
        batch.failure().map_or(Ok(()), Err)
    }
}

impl Inner {
    /// Why a message is not even sent.
    fn refusal_of(&self, message: &Message) -> Option<PublishError> {
        let refuse = |text: String| Some(PublishError::new(Fault::business().ran(Ran::No), text));
        if self.topic_of(message).is_none() {
            return refuse("the message has no topic, and the publisher has no default one".to_owned());
        }
        let (size, max) = (size_of(message), self.message_bytes_max);
        if size > max {
            return refuse(format!("the message has {size} bytes as a record, and the limit is {max}"));
        }
        None
    }

    fn topic_of<'a>(&'a self, message: &'a Message) -> Option<&'a str> {
        Some(message.topic()).filter(|topic| !topic.is_empty()).or(self.topic.as_deref())
    }

    async fn enqueue(&self, message: &Message) -> Result<DeliveryFuture, KafkaError> {
        let topic = self.topic_of(message).unwrap_or_default();
        let mut record = FutureRecord::to(topic).payload(message.payload()).headers(headers_of(message));
        record.key = key_of(message);
        self.producer.enqueue(record).await
    }
}

impl Publisher for KafkaPublisher {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(self.publish_all(messages))
    }
}

impl fmt::Debug for KafkaPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaPublisher")
            .field("topic", &self.inner.topic)
            .field("guard", &self.inner.guard.name())
            .finish_non_exhaustive()
    }
}
