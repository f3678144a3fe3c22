//! The builder of a publisher and its defaults.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Breaker, ConfigError, Guard, GuardBuilder, Retry};
use seawall_dist::messaging::PublishTelemetry;
use tokio::sync::Semaphore;

use super::NatsPublisher;
use crate::NatsConnection;
use crate::format::check_subject;

/// The default name of the guard, in its metrics and in what it says.
pub const GUARD_NAME: &str = "natsPublisher";
/// The default time in which the server has to acknowledge a batch. JetStream writes to disk within milliseconds.
pub const ACK_TIMEOUT: Duration = Duration::from_secs(2);
/// The default number of attempts. A connection that broke stands again within a few hundred milliseconds.
pub const PUBLISH_ATTEMPTS: u32 = 3;
/// The default wait before the second attempt. Each further one is twice as long.
pub const PUBLISH_BACKOFF: Duration = Duration::from_millis(100);
/// The default number of batches in a row that have to fail before the circuit opens.
pub const BREAKER_FAILURES: u32 = 10;
/// The default time for which an open circuit sends nothing.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(5);
/// The default number of messages without an acknowledgement. More would wait in the buffers of the client library.
pub const IN_FLIGHT_MAX: u32 = 4_096;

/// The guard that a publisher has unless told otherwise: time limits, retries with a budget and a circuit breaker.
pub fn default_guard(name: impl Into<String>) -> GuardBuilder {
    let retry =
        Retry::max_attempts(PUBLISH_ATTEMPTS).backoff(Backoff::exponential(PUBLISH_BACKOFF).full_jitter());
    let breaker =
        Breaker::consecutive_failures(BREAKER_FAILURES).cooldown(BREAKER_COOLDOWN).automatic_half_open();
    // The time limit of an attempt is that of the acknowledgement and what connecting takes.
    Guard::builder(name).attempt_timeout(ACK_TIMEOUT * 2).retry(retry).breaker(breaker)
}

/// Configures a [`NatsPublisher`]. [`NatsPublisher::builder`] creates it.
#[must_use = "call `build` to get the publisher"]
#[derive(Debug)]
pub struct NatsPublisherBuilder {
    connection: NatsConnection,
    component: String,
    stream: Option<String>,
    subject: Option<String>,
    guard: GuardBuilder,
    ack_timeout: Duration,
    in_flight_max: u32,
}

impl NatsPublisherBuilder {
    pub(super) fn new(connection: NatsConnection) -> Self {
        NatsPublisherBuilder {
            connection,
            component: "NATS-Publisher".to_owned(),
            stream: None,
            subject: None,
            guard: default_guard(GUARD_NAME),
            ack_timeout: ACK_TIMEOUT,
            in_flight_max: IN_FLIGHT_MAX,
        }
    }

    /// Sets the stream that has to take the messages. Another stream that has the subject refuses them; any stream may take
    /// them by default.
    pub fn stream(mut self, stream: impl Into<String>) -> Self {
        self.stream = Some(stream.into());
        self
    }

    /// Sets the subject of messages without a topic. Such messages are refused by default.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets the guard; [`default_guard`] by default. Its time limit of an attempt has to be longer than that of the
    /// acknowledgement.
    pub fn guard(mut self, guard: GuardBuilder) -> Self {
        self.guard = guard;
        self
    }

    /// Sets the time in which the server has to acknowledge a batch; [`ACK_TIMEOUT`] by default.
    pub fn ack_timeout(mut self, timeout: Duration) -> Self {
        self.ack_timeout = timeout;
        self
    }

    /// Sets the maximum number of messages without an acknowledgement; [`IN_FLIGHT_MAX`] by default.
    pub fn in_flight_max(mut self, messages: u32) -> Self {
        self.in_flight_max = messages;
        self
    }

    /// Sets the name in log lines; `NATS-Publisher` by default.
    pub fn component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// Builds the publisher.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<NatsPublisher, ConfigError> {
        let mut mistakes = Vec::new();
        if let Some(Err(reason)) = self.subject.as_deref().map(check_subject) {
            mistakes.push(("subject", reason));
        }
        if let Some(Err(reason)) = self.stream.as_deref().map(crate::names::check) {
            mistakes.push(("stream", reason));
        }
        if self.ack_timeout.is_zero() {
            mistakes.push(("ack_timeout", "is zero; no server answers in no time".to_owned()));
        }
        if self.in_flight_max == 0 {
            mistakes.push(("in_flight_max", "is zero; nothing could be published".to_owned()));
        }
        if !mistakes.is_empty() {
            return Err(ConfigError::new("the NATS publisher", mistakes));
        }
        let telemetry = PublishTelemetry::new(&self.component, "nats", self.connection.clock());
        Ok(NatsPublisher(Arc::new(super::Inner {
            guard: self.guard.build()?,
            connection: self.connection,
            stream: self.stream,
            subject: self.subject,
            ack_timeout: self.ack_timeout,
            in_flight_max: self.in_flight_max,
            in_flight: Semaphore::new(self.in_flight_max as usize),
            telemetry,
        })))
    }
}
