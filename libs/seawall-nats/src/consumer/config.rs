//! The builder of a consumer and its defaults.

use std::sync::Arc;
use std::time::Duration;

use seawall::ConfigError;
use seawall_dist::messaging::MessageProcessor;
use tokio::sync::Semaphore;

use super::declare::ConsumerSettings;
use super::failures::FailedMessages;
use super::held::HeldMessages;
use super::work::Worker;
use super::{Inner, NatsConsumer};
use crate::NatsConnection;
use crate::deadletter::{DeadLetterPlace, NatsAdvisoryCollector};
use crate::log::ConsumerLog;
use crate::names;
use crate::pull::PullTarget;

/// The default number of handlers that run at the same time.
pub const CONCURRENCY: u32 = 16;
/// The default number of messages in hand. It is small: when a process dies, each message in hand has one delivery more, whether
/// its handler ran or not.
pub const PREFETCH: u32 = 64;
/// The default time after which the server delivers a message again that nobody acknowledged. A handler may take longer, for the
/// server is told that the message is worked on; so this is how long a message waits after its process died.
pub const ACK_WAIT: Duration = Duration::from_secs(30);
/// The shortest time that makes sense for it. The server is told three times within it that a message is worked on.
pub const ACK_WAIT_MIN: Duration = Duration::from_millis(300);
/// The default number of messages that all processes of a consumer together may have in hand or waiting for their next attempt.
/// While it is reached the server delivers nothing.
pub const ACK_PENDING_MAX: u32 = 10_000;
/// The default time that handlers have to end when the consumer stops. It is below the 30 s that Kubernetes waits.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(25);

/// Configures a [`NatsConsumer`]. [`NatsConsumer::builder`] creates it.
#[must_use = "call `build` to get the consumer"]
#[derive(Debug)]
pub struct NatsConsumerBuilder {
    connection: NatsConnection,
    stream: String,
    name: String,
    processor: MessageProcessor,
    component: String,
    stream_subjects: Option<Vec<String>>,
    filter_subject: String,
    concurrency: u32,
    prefetch: Option<u32>,
    ack_wait: Duration,
    ack_pending_max: u32,
    redelivery_waits: Vec<Duration>,
    confirm_acks: bool,
    stop_timeout: Duration,
    letters_kept_for: Option<Duration>,
}

impl NatsConsumerBuilder {
    pub(super) fn new(
        connection: NatsConnection,
        stream: String,
        name: String,
        processor: MessageProcessor,
    ) -> Self {
        NatsConsumerBuilder {
            connection,
            stream,
            name,
            processor,
            component: "NATS-Consumer".to_owned(),
            stream_subjects: None,
            filter_subject: String::new(),
            concurrency: CONCURRENCY,
            prefetch: None,
            ack_wait: ACK_WAIT,
            ack_pending_max: ACK_PENDING_MAX,
            redelivery_waits: Vec::new(),
            confirm_acks: false,
            stop_timeout: STOP_TIMEOUT,
            letters_kept_for: None,
        }
    }

    /// Creates the stream with these subjects if it is not there. A stream that is not there is an error by default, because its
    /// limits and replicas are a decision.
    pub fn create_stream(mut self, subjects: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.stream_subjects = Some(subjects.into_iter().map(Into::into).collect());
        self
    }

    /// Takes only messages of this subject, which may have wildcards; all messages of the stream by default.
    pub fn filter_subject(mut self, subject: impl Into<String>) -> Self {
        self.filter_subject = subject.into();
        self
    }

    /// Sets how many handlers run at the same time; [`CONCURRENCY`] by default.
    pub fn concurrency(mut self, handlers: u32) -> Self {
        self.concurrency = handlers;
        self
    }

    /// Sets how many messages this process has in hand; [`PREFETCH`] by default, or the concurrency if that is more.
    pub fn prefetch(mut self, messages: u32) -> Self {
        self.prefetch = Some(messages);
        self
    }

    /// Processes one message after the other in the order of the stream, across all processes of this consumer. A message that
    /// fails is attempted again before the next one, and the next one comes when it is done or given up.
    pub fn in_order(mut self) -> Self {
        (self.concurrency, self.prefetch, self.ack_pending_max) = (1, Some(1), 1);
        self
    }

    /// Sets after what time the server delivers a message again that nobody acknowledged; [`ACK_WAIT`] by default.
    pub fn ack_wait(mut self, wait: Duration) -> Self {
        self.ack_wait = wait;
        self
    }

    /// Sets this time for each delivery, the last one for all that follow: how long a message waits whose process died, once,
    /// twice and so on. It is the same for all deliveries by default. Failures that a handler reports wait as its processor
    /// says.
    pub fn redelivery_waits(mut self, waits: impl IntoIterator<Item = Duration>) -> Self {
        self.redelivery_waits = waits.into_iter().collect();
        self
    }

    /// Sets how many messages all processes of this consumer together may have in hand; [`ACK_PENDING_MAX`] by default.
    pub fn ack_pending_max(mut self, messages: u32) -> Self {
        self.ack_pending_max = messages;
        self
    }

    /// Waits for the server's confirmation of each acknowledgement. It costs a round trip for each message, and a message whose
    /// acknowledgement was lost is acknowledged again instead of processed again.
    pub fn confirm_acks(mut self) -> Self {
        self.confirm_acks = true;
        self
    }

    /// Sets how long handlers have to end when the consumer stops; [`STOP_TIMEOUT`] by default.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Removes dead letters from their stream after this time, whether somebody took them over or not. They are kept for ever by
    /// default.
    pub fn letters_kept_for(mut self, age: Duration) -> Self {
        self.letters_kept_for = Some(age);
        self
    }

    /// Sets the name in log lines of the connection to the consumer; `NATS-Consumer` by default. The lines about messages have
    /// the name of the processor.
    pub fn component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// Builds the consumer.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<NatsConsumer, ConfigError> {
        let prefetch = self.prefetch.unwrap_or(PREFETCH.max(self.concurrency).min(self.ack_pending_max));
        let mistakes = self.mistakes(prefetch);
        if !mistakes.is_empty() {
            return Err(ConfigError::new("the NATS consumer", mistakes));
        }
        let stream: Arc<str> = self.stream.into();
        let place = DeadLetterPlace { stream: stream.clone(), kept_for: self.letters_kept_for };
        let ack_wait = self.redelivery_waits.iter().copied().min().unwrap_or(self.ack_wait);
        let longest_wait = self.redelivery_waits.iter().copied().max().unwrap_or(self.ack_wait);
        let settings = ConsumerSettings {
            stream: stream.clone(),
            name: self.name.into(),
            filter_subject: self.filter_subject,
            // The server takes the first of the waits for it.
            ack_wait: self.redelivery_waits.first().copied().unwrap_or(self.ack_wait),
            max_deliver: i64::from(self.processor.attempts_max()),
            max_ack_pending: i64::from(self.ack_pending_max),
            backoff: self.redelivery_waits,
        };
        let target = PullTarget::new(stream, settings.name.clone(), prefetch, self.concurrency);
        let target = target.careful(longest_wait);
        let clock = self.connection.clock().clone();
        let collector = NatsAdvisoryCollector::of_place(self.connection.clone(), place.clone());
        let worker = Worker {
            connection: self.connection,
            target,
            processor: self.processor,
            concurrency: self.concurrency,
            held: HeldMessages::new(clock.clone()),
            failures: FailedMessages::default(),
            place,
            ack_wait,
            confirm_acks: self.confirm_acks,
            log: ConsumerLog::new(self.component, &clock),
        };
        Ok(NatsConsumer(Arc::new(Inner {
            worker: Arc::new(worker),
            settings,
            stream_subjects: self.stream_subjects,
            collector,
            room: Arc::new(Semaphore::new(prefetch as usize)),
            stop_timeout: self.stop_timeout,
        })))
    }

    fn mistakes(&self, prefetch: u32) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        for (setting, name) in [("stream", &self.stream), ("name", &self.name)] {
            mistakes.extend(names::check(name).err().map(|reason| (setting, reason)));
        }
        let least = ACK_WAIT_MIN.as_millis();
        let waits = || self.redelivery_waits.iter();
        let checks = [
            (self.concurrency == 0, "concurrency", "is zero; no handler could run".to_owned()),
            (prefetch == 0, "prefetch", "is zero; no message could be taken".to_owned()),
            (
                prefetch < self.concurrency,
                "prefetch",
                format!("is {prefetch}, so that only as many of the {} handlers can run", self.concurrency),
            ),
            (
                prefetch > self.ack_pending_max,
                "ack_pending_max",
                format!("is {}, and one process may have {prefetch} messages in hand", self.ack_pending_max),
            ),
            (self.ack_wait < ACK_WAIT_MIN, "ack_wait", format!("is below {least} ms")),
            (
                waits().any(|wait| *wait < ACK_WAIT_MIN),
                "redelivery_waits",
                format!("has a wait below {least} ms"),
            ),
            (
                self.redelivery_waits.len() > self.processor.attempts_max() as usize,
                "redelivery_waits",
                "has more waits than a message has attempts".to_owned(),
            ),
            (self.component.is_empty(), "component", "is empty; log lines need a name".to_owned()),
            (
                self.letters_kept_for.is_some_and(|age| age.is_zero()),
                "letters_kept_for",
                "is zero; no letter would be kept".to_owned(),
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, ..)| *wrong);
        mistakes.extend(wrong.map(|(_, setting, reason)| (setting, reason)));
        mistakes
    }
}
