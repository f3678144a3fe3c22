//! The builder of a publisher and its defaults.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Breaker, Bulkhead, Clock, ConfigError, Guard, GuardBuilder, Retry, secs};
use seawall_dist::messaging::PublishTelemetry;

use crate::producer::SharedProducer;
use crate::publisher::{Inner, KafkaPublisher};
use crate::telemetry::log_transitions;
use crate::{KafkaCluster, MESSAGE_BYTES_MAX};

/// The default name of the guard, in its metrics and in what it says.
pub const GUARD_NAME: &str = "kafkaPublisher";
/// The default time limit of an attempt. The client itself tries several times within it.
pub const TIME_LIMIT: Duration = secs(5);
/// The default number of attempts: with their pauses they outlast an election or the restart of a broker.
pub const ATTEMPTS: u32 = 5;
/// The default wait after the first attempt. Each further one is twice as long.
pub const BACKOFF_BASE: Duration = secs(1);
/// The default share of failed attempts that opens the circuit, in per cent. It is high, because the client repeats within an
/// attempt what passes soon.
pub const BREAKER_FAILURE_RATE: u8 = 70;
/// The default number of attempts that the share is taken of.
pub const BREAKER_WINDOW: u32 = 10;
/// The default number of attempts below which the share means nothing.
pub const BREAKER_MINIMUM_CALLS: u32 = 5;
/// The default number of attempts that a circuit lets through to find out whether the cluster is back.
pub const BREAKER_PROBES: u32 = 3;
/// The default time for which an open circuit sends nothing.
pub const BREAKER_COOLDOWN: Duration = secs(30);
/// The default number of calls at once. A call may have any number of messages.
pub const CALLS_MAX: u32 = 20;
/// The default time that a call waits for its turn.
pub const CALL_WAIT: Duration = secs(5);

/// How much earlier than an attempt the client gives up on a record: it looks for late ones once per second.
const TIMEOUT_SCAN: Duration = Duration::from_millis(1_200);

/// The guard that a publisher has unless told otherwise: attempts with a time limit, retries within a budget, a circuit breaker,
/// and a limit of calls at once.
pub fn default_guard(name: impl Into<String>) -> GuardBuilder {
    let breaker = Breaker::failure_rate(BREAKER_FAILURE_RATE)
        .over_calls(BREAKER_WINDOW)
        .minimum_calls(BREAKER_MINIMUM_CALLS)
        .probes(BREAKER_PROBES)
        .judge_probes_together()
        .cooldown(BREAKER_COOLDOWN)
        .automatic_half_open();
    let guard = Guard::builder(name)
        .attempt_timeout(TIME_LIMIT)
        .retry(Retry::max_attempts(ATTEMPTS).backoff(Backoff::exponential(BACKOFF_BASE)))
        .breaker(breaker)
        .bulkhead(Bulkhead::max_calls(CALLS_MAX).max_wait(CALL_WAIT));
    log_transitions(guard)
}

/// Configures a [`KafkaPublisher`]. [`KafkaPublisher::builder`] creates it.
#[must_use = "call `build` to get the publisher"]
pub struct KafkaPublisherBuilder {
    cluster: KafkaCluster,
    topic: Option<String>,
    time_limit: Duration,
    message_bytes_max: usize,
    guard: Option<GuardBuilder>,
}

impl KafkaPublisherBuilder {
    pub(crate) fn new(cluster: KafkaCluster) -> Self {
        KafkaPublisherBuilder {
            cluster,
            topic: None,
            time_limit: TIME_LIMIT,
            message_bytes_max: MESSAGE_BYTES_MAX,
            guard: None,
        }
    }

    /// Sets the topic of messages that name none.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Sets the time limit of an attempt; [`TIME_LIMIT`] unless told. The client gives up on a record (`delivery.timeout.ms`)
    /// a little earlier, so that nothing is written after the attempt has failed.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets the largest record; [`MESSAGE_BYTES_MAX`] unless told. A larger one is refused before it is sent. The topic has a
    /// limit of its own, `max.message.bytes`.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Replaces the guard, which is [`default_guard`] unless told. Its attempts get the publisher's time limit.
    pub fn guard(mut self, guard: GuardBuilder) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Builds the publisher. It connects with the first message.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<KafkaPublisher, ConfigError> {
        let mut problems = Vec::new();
        if self.time_limit < Duration::from_millis(100) {
            problems.push(("time_limit", "is below 100 ms, which no cluster keeps; leave it out".to_owned()));
        }
        if !(1_000..=1_000_000_000).contains(&self.message_bytes_max) {
            problems.push(("message_bytes_max", "must be from 1 000 to 1 000 000 000 bytes".to_owned()));
        }
        if self.topic.as_deref().is_some_and(|topic| !crate::topics::is_valid(topic)) {
            problems.push(("topic", crate::topics::NAME_RULE.to_owned()));
        }
        if !problems.is_empty() {
            return Err(ConfigError::new("the Kafka publisher", problems));
        }
        // librdkafka looks once per second which records have timed out.
        let delivery = (self.time_limit.saturating_sub(TIMEOUT_SCAN)).max(self.time_limit / 2);
        let producer =
            SharedProducer::new(&self.cluster, "Kafka-Publisher", delivery, self.message_bytes_max)
                .map_err(|error| ConfigError::new("the Kafka publisher", [("cluster", error.to_string())]))?;
        let guard = self.guard.unwrap_or_else(|| default_guard(GUARD_NAME));
        let clock = Clock::system();
        let inner = Inner {
            producer,
            guard: guard.attempt_timeout(self.time_limit).build()?,
            topic: self.topic,
            message_bytes_max: self.message_bytes_max,
            telemetry: PublishTelemetry::new("Kafka-Publisher", "kafka", &clock),
            clock,
        };
        Ok(KafkaPublisher { inner: Arc::new(inner) })
    }
}

impl fmt::Debug for KafkaPublisherBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaPublisherBuilder")
            .field("cluster", &self.cluster)
            .field("topic", &self.topic)
            .field("time_limit", &self.time_limit)
            .field("message_bytes_max", &self.message_bytes_max)
            .finish_non_exhaustive()
    }
}
