//! The builder of a publisher and its defaults.

use std::time::Duration;

use seawall::{Backoff, Breaker, Bulkhead, Clock, ConfigError, Guard, GuardBuilder, Retry};

use super::publisher::AmqpPublisher;
use crate::connection::AmqpConnection;

/// The default name of the guard, in its metrics and in what it says.
pub const GUARD_NAME: &str = "rabbitmqPublisher";
/// The default time limit of an attempt to publish a batch.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The default number of attempts. Only messages that were not confirmed are sent again.
pub const PUBLISH_ATTEMPTS: u32 = 5;
/// The default wait after the first attempt. Each further one is twice as long.
pub const PUBLISH_RETRY_WAIT: Duration = Duration::from_secs(1);
/// The default share of failed attempts that opens the circuit, in per cent. It is high, because an open circuit sends every
/// message into the outbox or back to its caller.
pub const BREAKER_FAILURE_RATE: u8 = 70;
/// The default number of attempts that the share is taken of.
pub const BREAKER_WINDOW: u32 = 10;
/// The default number of attempts below which the share means nothing.
pub const BREAKER_MINIMUM_CALLS: u32 = 5;
/// The default number of attempts that a circuit lets through to find out whether RabbitMQ is back.
pub const BREAKER_PROBES: u32 = 3;
/// The default time for which an open circuit sends nothing.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);
/// The default number of calls at once. Each has a channel of its own; callers beyond it wait in line for up to the time limit.
pub const BULKHEAD_CALLS: u32 = 20;
/// The default size above which a message is refused before it is sent: what RabbitMQ 4 allows. RabbitMQ 3 allows 128 MiB.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The size of all headers together above which a message is refused. They travel in one frame, and a frame that is larger than
/// agreed (usually 128 KiB) makes the server close the connection with everything that is in flight on it.
pub const HEADER_BYTES_MAX: usize = 100 * 1024;
/// The number of messages of one call that wait for their confirmation at the same time.
pub const IN_FLIGHT_MAX: usize = 1_000;
/// The bytes of messages of one call that wait for their confirmation at the same time. A larger message is sent alone.
pub const IN_FLIGHT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The number of idle channels that are kept for the next calls.
pub const CHANNELS_MAX: usize = 32;

/// The guard that a publisher has unless told otherwise: a time limit, retries within a budget, a circuit breaker, and a limit of
/// calls at once.
pub fn default_guard(name: impl Into<String>) -> GuardBuilder {
    let breaker = Breaker::failure_rate(BREAKER_FAILURE_RATE)
        .over_calls(BREAKER_WINDOW)
        .minimum_calls(BREAKER_MINIMUM_CALLS)
        .probes(BREAKER_PROBES)
        .judge_probes_together()
        .cooldown(BREAKER_COOLDOWN)
        .automatic_half_open();
    let retry = Retry::max_attempts(PUBLISH_ATTEMPTS).backoff(Backoff::exponential(PUBLISH_RETRY_WAIT));
    Guard::builder(name)
        .attempt_timeout(TIME_LIMIT)
        .retry(retry)
        .breaker(breaker)
        .bulkhead(Bulkhead::max_calls(BULKHEAD_CALLS).max_wait(TIME_LIMIT))
}

/// Configures an [`AmqpPublisher`]. [`AmqpPublisher::builder`] creates it.
#[must_use = "call `build` to get the publisher"]
#[derive(Debug)]
pub struct AmqpPublisherBuilder {
    pub(super) connection: AmqpConnection,
    pub(super) exchange: String,
    pub(super) routing_key: Option<String>,
    pub(super) guard: GuardBuilder,
    pub(super) message_bytes_max: usize,
    pub(super) component: String,
    pub(super) clock: Clock,
}

impl AmqpPublisherBuilder {
    pub(super) fn new(connection: AmqpConnection) -> Self {
        AmqpPublisherBuilder {
            connection,
            exchange: String::new(),
            routing_key: None,
            guard: default_guard(GUARD_NAME),
            message_bytes_max: MESSAGE_BYTES_MAX,
            component: "RabbitMQ-Publisher".to_owned(),
            clock: Clock::default(),
        }
    }

    /// Publishes to this exchange; unless told, to the default exchange, where the routing key is the name of a queue. The
    /// exchange is not declared: an absent one is an error.
    pub fn exchange(mut self, exchange: impl Into<String>) -> Self {
        self.exchange = exchange.into();
        self
    }

    /// Sets the routing key of messages without a topic; unless told, it is their event type.
    pub fn routing_key(mut self, key: impl Into<String>) -> Self {
        self.routing_key = Some(key.into());
        self
    }

    /// Publishes through this guard; [`default_guard`] unless told.
    pub fn guard(mut self, guard: GuardBuilder) -> Self {
        self.guard = guard;
        self
    }

    /// Refuses messages above this size before they are sent; [`MESSAGE_BYTES_MAX`] unless told. Set it to the server's
    /// `max_message_size`.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Names the publisher in log lines; `RabbitMQ-Publisher` unless told.
    pub fn component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// Measures with this clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the publisher, or says everything that is wrong at once. Nothing is sent.
    pub fn build(self) -> Result<AmqpPublisher, ConfigError> {
        let too_long = |text: &str| text.len() > 255;
        let checks = [
            (too_long(&self.exchange), "exchange", "a name has up to 255 bytes"),
            (
                self.routing_key.as_deref().is_some_and(too_long),
                "routing_key",
                "a routing key has up to 255 bytes",
            ),
            (
                self.message_bytes_max == 0,
                "message_bytes_max",
                "no message fits; write the server's `max_message_size`",
            ),
            (self.component.is_empty(), "component", "log lines need the name of the publisher"),
        ];
        let wrong = checks.into_iter().filter(|(wrong, ..)| *wrong);
        let problems: Vec<_> = wrong.map(|(_, setting, reason)| (setting, reason.to_owned())).collect();
        if !problems.is_empty() {
            return Err(ConfigError::new("the publisher of RabbitMQ", problems));
        }
        AmqpPublisher::from_builder(self)
    }
}
