//! A producer of librdkafka with the settings that the adapter's promises rest on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord};
use seawall::Fault;
use seawall::fault::Class;
use seawall_dist::PublishError;

use crate::KafkaCluster;
use crate::client::{ClientEvents, SharedEvents};
use crate::fault::{fault_of, is_fatal};

/// How often a record is offered again to a queue that is full. The caller's time limit ends the wait.
const QUEUE_POLL: Duration = Duration::from_millis(5);

/// How long records wait for others to share a request. Less than Kafka's 5 ms, because callers wait for each result.
const LINGER: Duration = Duration::from_millis(1);

/// A producer that all users of a publisher or a consumer share. It is made anew after an error that ends it.
pub(crate) struct SharedProducer {
    config: ClientConfig,
    events: Arc<ClientEvents>,
    current: Mutex<FutureProducer<SharedEvents>>,
}

impl SharedProducer {
    /// Makes a producer. Within `delivery_timeout` a record is acknowledged or has failed.
    pub(crate) fn new(
        cluster: &KafkaCluster,
        component: &'static str,
        delivery_timeout: Duration,
        message_bytes_max: usize,
    ) -> Result<Self, KafkaError> {
        let mut config = cluster.client_config();
        let millis = |duration: Duration| duration.as_millis().max(1).to_string();
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("delivery.timeout.ms", millis(delivery_timeout))
            // A request without an answer is given up while there is time for another.
            .set("request.timeout.ms", millis(delivery_timeout / 2))
            .set("linger.ms", millis(LINGER))
            .set("message.max.bytes", message_bytes_max.to_string())
            // The partition of a key is the one that clients in Java choose.
            .set("partitioner", "murmur2_random")
            // A topic that does not exist is an error, and it comes before the delivery times out.
            .set("topic.metadata.propagation.max.ms", millis(delivery_timeout / 2));
        let events = Arc::new(ClientEvents::new(component));
        let current = config.create_with_context(SharedEvents(events.clone()))?;
        Ok(SharedProducer { config, events, current: Mutex::new(current) })
    }

    pub(crate) fn events(&self) -> &ClientEvents {
        &self.events
    }

    /// Puts a record into the queue, waiting while that is full.
    pub(crate) async fn enqueue(
        &self,
        mut record: FutureRecord<'_, [u8], [u8]>,
    ) -> Result<DeliveryFuture, KafkaError> {
        loop {
            let producer = self.current().clone();
            match producer.send_result(record) {
                Ok(acknowledgement) => return Ok(acknowledgement),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                    record = refused;
                    tokio::time::sleep(QUEUE_POLL).await;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Sends a record and waits for its acknowledgement.
    pub(crate) async fn send(&self, record: FutureRecord<'_, [u8], [u8]>) -> Result<(), PublishError> {
        let sent = self.enqueue(record).await.map_err(|error| self.explain(&error))?;
        match sent.await {
            Ok(Ok(_)) => {
                self.events.connected();
                Ok(())
            }
            Ok(Err((error, _))) => Err(self.explain(&error)),
            Err(_) => Err(self.explain(&KafkaError::Canceled)),
        }
    }

    /// The error of a record that the client reports.
    pub(crate) fn explain(&self, error: &KafkaError) -> PublishError {
        if is_fatal(error) {
            self.renew(error);
        }
        self.explain_timeout(fault_of(error), error.to_string())
    }

    /// The error of a record. A timeout while the cluster refuses the credentials is that refusal.
    pub(crate) fn explain_timeout(&self, fault: Fault, text: String) -> PublishError {
        match self.events.refusal().filter(|_| fault.class() == Class::Timeout) {
            Some(refusal) => {
                PublishError::new(fault_of(&refusal), format!("the cluster refuses this client: {refusal}"))
            }
            None => PublishError::new(fault, text),
        }
    }

    /// Replaces a producer that can't go on.
    fn renew(&self, cause: &KafkaError) {
        match self.config.create_with_context(SharedEvents(self.events.clone())) {
            Ok(producer) => {
                self.events.log().warn("Producer", "The producer ended and was made anew.", cause);
                let ended = std::mem::replace(&mut *self.current(), producer);
                drop(ended);
            }
            Err(error) => self.events.log().error("Producer", "The producer ended!", &error),
        }
    }

    fn current(&self) -> MutexGuard<'_, FutureProducer<SharedEvents>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
