//! Publishes messages to streams, and knows that they are stored.

mod config;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use seawall::fault::Ran;
use seawall::{Fault, Guard, Tick};
use seawall_dist::messaging::PublishTelemetry;
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use config::{
    ACK_TIMEOUT, BREAKER_COOLDOWN, BREAKER_FAILURES, GUARD_NAME, IN_FLIGHT_MAX, NatsPublisherBuilder,
    PUBLISH_ATTEMPTS, PUBLISH_BACKOFF, default_guard,
};

use crate::fault::fault_of;
use crate::format::{check_subject, headers_of, refused};
use crate::{NatsConnection, NatsError};

/// Publishes messages to the streams of JetStream. A result is `Ok` when the server has stored the message.
///
/// The topic of a message is its subject. A batch is sent at once and costs one round trip. JetStream recognises a message that
/// is published again within its window by its event id, so that retries do not double it. It is a handle: clones share
/// everything.
#[derive(Clone)]
pub struct NatsPublisher(Arc<Inner>);

struct Inner {
    connection: NatsConnection,
    guard: Guard,
    stream: Option<String>,
    subject: Option<String>,
    ack_timeout: Duration,
    in_flight_max: u32,
    in_flight: Semaphore,
    telemetry: PublishTelemetry,
}

/// The messages of a batch with what became of them; `None` for those that no attempt has reached yet.
struct Batch<'a> {
    messages: &'a [Message],
    results: Mutex<Vec<Option<Result<(), PublishError>>>>,
}

impl NatsPublisher {
    /// Creates a publisher with default settings.
    ///
    /// # Errors
    /// None of the default settings is invalid.
    pub fn new(connection: NatsConnection) -> Result<Self, seawall::ConfigError> {
        NatsPublisher::builder(connection).build()
    }

    /// Chooses the stream, the guard and the limits.
    pub fn builder(connection: NatsConnection) -> NatsPublisherBuilder {
        NatsPublisherBuilder::new(connection)
    }

    /// The guard around each batch.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.0.guard
    }

    async fn publish_all(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let mut results = Vec::with_capacity(messages.len());
        for part in messages.chunks(self.0.in_flight_max as usize) {
            results.extend(self.publish_batch(part).await);
        }
        results
    }

    async fn publish_batch(&self, messages: &[Message]) -> Vec<Result<(), PublishError>> {
        let batch = Batch { messages, results: Mutex::new(vec![None; messages.len()]) };
        messages.iter().for_each(|message| self.0.telemetry.start(message));
        // JetStream and consumers recognise a repeated message by its event id.
        let call = self.0.guard.idempotent().operation("publish").call(|_| self.attempt(&batch));
        let failed = call.await.err();
        let results = std::mem::take(&mut *batch.lock());
        // The guard calls a failure final when its retries are spent. For an outbox it is one that passes.
        let without_attempt = || match &failed {
            Some(error) if error.last_fault().is_transient() => {
                PublishError::new(error.last_fault(), error.to_string())
            }
            Some(error) => PublishError::new(error.fault(), error.to_string()),
            None => PublishError::new(Fault::system(), "the publisher made no attempt"),
        };
        results.into_iter().map(|result| result.unwrap_or_else(|| Err(without_attempt()))).collect()
    }

    /// Publishes what is not published yet. Fails if another attempt may help at least one message.
    async fn attempt(&self, batch: &Batch<'_>) -> Result<(), PublishError> {
        let pending = batch.pending();
        let begin = self.0.connection.clock().now();
        let result = self.send_and_wait(batch, &pending, begin).await;
        if let Err(error) = &result {
            self.0.connection.forget_if_ended(error);
            let error = PublishError::new(error.fault(), error.to_string());
            let took = self.0.connection.clock().now().since(begin);
            for &index in &pending {
                self.0.telemetry.failed(&batch.messages[index], &error, took);
                batch.set(index, Err(error.clone()));
            }
        }
        batch.transient_failure().map_or(Ok(()), Err)
    }

    async fn send_and_wait(
        &self,
        batch: &Batch<'_>,
        pending: &[usize],
        begin: Tick,
    ) -> Result<(), NatsError> {
        let context = self.0.connection.jetstream().await?;
        let permits = u32::try_from(pending.len()).unwrap_or(u32::MAX);
        let Ok(_permits) = self.0.in_flight.acquire_many(permits).await else {
            return Err(NatsError::new("publishing", Fault::system().ran(Ran::No), "the limit is closed"));
        };
        let mut acks = Vec::with_capacity(pending.len());
        for &index in pending {
            acks.push((index, self.send(&context, &batch.messages[index]).await));
        }
        for (index, ack) in acks {
            let result = match ack {
                Ok(ack) => self.acknowledgement(ack, begin).await,
                Err(error) => Err(error),
            };
            let message = &batch.messages[index];
            let result = match result {
                Ok(ack) => Ok(ack),
                Err(error) => Err(self.diagnose(&context, message, error, begin).await),
            };
            self.tell(message, &result, begin);
            batch.set(index, result.map(|_| ()));
        }
        Ok(())
    }

    /// Hands a message to the client library, and returns where its acknowledgement comes.
    async fn send(&self, context: &Context, message: &Message) -> Result<PublishAckFuture, PublishError> {
        let subject = self.subject_of(message);
        check_subject(subject).map_err(refused)?;
        let headers = headers_of(message, self.0.stream.as_deref())?;
        let publish = PublishMessage::build().headers(headers).payload(message.payload().to_vec().into());
        let sent = context.send_publish(subject.to_owned(), publish).await;
        sent.map_err(|error| PublishError::new(fault_of(&error), error.to_string()))
    }

    /// Waits for the rest of the time that the batch has.
    async fn acknowledgement(&self, ack: PublishAckFuture, begin: Tick) -> Result<PublishAck, PublishError> {
        let spent = self.0.connection.clock().now().since(begin);
        match timeout(self.0.ack_timeout.saturating_sub(spent), ack.into_future()).await {
            Ok(Ok(ack)) => Ok(ack),
            Ok(Err(error)) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(PublishError::new(no_stream(), error.to_string()))
            }
            Ok(Err(error)) => Err(PublishError::new(fault_of(&error), error.to_string())),
            Err(_) => {
                Err(PublishError::new(Fault::timeout(), "the server did not acknowledge the message in time"))
            }
        }
    }

    /// Finds out what an error means that the server expresses in two ways.
    async fn diagnose(
        &self,
        context: &Context,
        message: &Message,
        error: PublishError,
        begin: Tick,
    ) -> PublishError {
        let subject = self.subject_of(message);
        // The server answers a publisher without permission beside the acknowledgement, which never comes.
        if let Some(violation) = self.0.connection.violation_since(begin, subject) {
            return PublishError::new(Fault::business().ran(Ran::No), violation);
        }
        if error.fault() != no_stream() {
            return error;
        }
        // Nobody listens on the subject: there is no such stream, or its leader is being elected. JetStream knows.
        match context.stream_by_subject(subject).await {
            Ok(stream) => PublishError::new(
                Fault::unreachable(),
                format!("the stream `{stream}` of the subject `{subject}` does not answer"),
            ),
            Err(cause) if fault_of(&cause).is_transient() => {
                PublishError::new(Fault::unreachable(), format!("JetStream does not answer: {cause}"))
            }
            Err(_) => refused(format!("no stream has the subject `{subject}`")),
        }
    }

    fn tell(&self, message: &Message, result: &Result<PublishAck, PublishError>, begin: Tick) {
        let took = self.0.connection.clock().now().since(begin);
        match result {
            Ok(ack) => {
                self.0.telemetry.acknowledged(message, None, i64::try_from(ack.sequence).ok(), took);
            }
            Err(error) => self.0.telemetry.failed(message, error, took),
        }
    }

    fn subject_of<'a>(&'a self, message: &'a Message) -> &'a str {
        match (message.topic(), &self.0.subject) {
            ("", Some(subject)) => subject,
            (topic, _) => topic,
        }
    }
}

/// The mark of an answer that nobody gave, until it is known why.
fn no_stream() -> Fault {
    Fault::business().ran(Ran::No).named("no_stream")
}

impl Batch<'_> {
    /// The messages that are neither published nor refused for good.
    fn pending(&self) -> Vec<usize> {
        let is_pending = |result: &Option<Result<(), PublishError>>| match result {
            None => true,
            Some(Ok(())) => false,
            Some(Err(error)) => error.fault().is_transient(),
        };
        self.lock()
            .iter()
            .enumerate()
            .filter(|(_, result)| is_pending(result))
            .map(|(index, _)| index)
            .collect()
    }

    fn set(&self, index: usize, result: Result<(), PublishError>) {
        self.lock()[index] = Some(result);
    }

    fn transient_failure(&self) -> Option<PublishError> {
        let results = self.lock();
        let failures = results.iter().flatten().filter_map(|result| result.as_ref().err());
        failures.into_iter().find(|error| error.fault().is_transient()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Result<(), PublishError>>>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publisher for NatsPublisher {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(self.publish_all(messages))
    }
}

impl fmt::Debug for NatsPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsPublisher")
            .field("connection", &self.0.connection)
            .field("stream", &self.0.stream)
            .finish_non_exhaustive()
    }
}
