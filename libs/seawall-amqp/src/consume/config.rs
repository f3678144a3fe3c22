//! The builder of a consumer and its defaults.

use std::time::Duration;

use seawall::ConfigError;
use seawall_dist::messaging::MessageProcessor;

use super::consumer::AmqpConsumer;
use crate::connection::AmqpConnection;
use crate::topology::QueueTopology;

/// The default number of messages that are processed at the same time.
pub const CONCURRENCY: usize = 16;

/// The default number of messages that the server sends before any is acknowledged: those that are processed, and some that wait
/// to be. A crash counts as a failed attempt for all of them, so it is not larger than throughput needs.
pub const PREFETCH: u16 = 64;

/// The default time that a consumer takes to finish what it has when it is told to stop. Kubernetes waits 30 s.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(25);

/// How long a message that can't be processed now is held before it goes through a retry queue. RabbitMQ closes the channel of a
/// consumer that keeps a message for 30 minutes.
pub const HOLD_MAX: Duration = Duration::from_secs(5 * 60);

/// Configures an [`AmqpConsumer`]. [`AmqpConsumer::builder`] creates it.
#[must_use = "call `build` to get the consumer"]
#[derive(Debug)]
pub struct AmqpConsumerBuilder {
    pub(super) connection: AmqpConnection,
    pub(super) topology: QueueTopology,
    pub(super) processor: MessageProcessor,
    pub(super) concurrency: usize,
    pub(super) prefetch: u16,
    pub(super) stop_timeout: Duration,
    pub(super) hold_max: Duration,
    pub(super) component: String,
}

impl AmqpConsumerBuilder {
    pub(super) fn new(
        connection: AmqpConnection,
        topology: QueueTopology,
        processor: MessageProcessor,
    ) -> Self {
        AmqpConsumerBuilder {
            connection,
            topology,
            processor,
            concurrency: CONCURRENCY,
            prefetch: PREFETCH,
            stop_timeout: STOP_TIMEOUT,
            hold_max: HOLD_MAX,
            component: "RabbitMQ-Consumer".to_owned(),
        }
    }

    /// Processes up to this many messages at the same time; [`CONCURRENCY`] unless told. With 1, messages are processed in the order
    /// of the queue, those that are attempted again excepted.
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = messages;
        self
    }

    /// Lets the server send up to this many messages ahead; [`PREFETCH`] unless told.
    pub fn prefetch(mut self, messages: u16) -> Self {
        self.prefetch = messages;
        self
    }

    /// Sets how long the consumer takes to finish what it has when it is told to stop; [`STOP_TIMEOUT`] unless told.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Sets how long a message is held that can't be processed now, because the inbox is away or a circuit is open; [`HOLD_MAX`]
    /// unless told. Keep it well below the server's `consumer_timeout`.
    pub fn hold_max(mut self, hold: Duration) -> Self {
        self.hold_max = hold;
        self
    }

    /// Names the consumer in log lines about its subscription; `RabbitMQ-Consumer` unless told.
    pub fn component(mut self, component: impl Into<String>) -> Self {
        self.component = component.into();
        self
    }

    /// Builds the consumer, or says everything that is wrong at once. Nothing is consumed until it [runs](AmqpConsumer::run_until).
    pub fn build(self) -> Result<AmqpConsumer, ConfigError> {
        let (queues, processor) = (self.topology.max_attempts(), self.processor.attempts_max());
        let mut problems = Vec::new();
        let mut check =
            |wrong: bool, setting, reason: String| wrong.then(|| problems.push((setting, reason)));
        check(self.concurrency == 0, "concurrency", "at least one message is processed at a time".to_owned());
        check(
            self.prefetch == 0,
            "prefetch",
            "it is zero, which is no limit at all; write a number such as 64".to_owned(),
        );
        check(
            usize::from(self.prefetch) < self.concurrency,
            "prefetch",
            format!(
                "it is {}, so that {} messages are never processed at the same time; raise it",
                self.prefetch, self.concurrency
            ),
        );
        check(
            queues != processor,
            "max_attempts",
            format!(
                "the queues allow {queues} attempts and the processor {processor}; set both to the same number"
            ),
        );
        check(self.component.is_empty(), "component", "log lines need the name of the consumer".to_owned());
        if !problems.is_empty() {
            return Err(ConfigError::new("the consumer of RabbitMQ", problems));
        }
        Ok(AmqpConsumer::from_builder(self))
    }
}
