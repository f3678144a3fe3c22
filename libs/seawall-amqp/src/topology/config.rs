//! What is declared, and its defaults.

use std::sync::Arc;
use std::time::Duration;

use lapin::ExchangeKind;
use lapin::types::{AMQPValue, FieldTable};
use seawall::ConfigError;

/// The exchange that given up messages go to: direct and durable.
pub const DEAD_LETTER_EXCHANGE: &str = "dlx.exchange";

/// The default number of attempts. RabbitMQ counts re-deliveries, so that five attempts are an `x-delivery-limit` of four.
pub const MAX_ATTEMPTS: u32 = 5;

/// The default waits between attempts. Each has a queue of its own.
pub const RETRY_DELAYS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// The `x-delivery-limit` of the dead letter queue: practically none. RabbitMQ 4 has a limit of 20 where a queue has none, and
/// drops what exceeds it; a negative number, which means no limit there, is refused by RabbitMQ 3.
pub const UNLIMITED_DELIVERIES: u32 = 1_000_000_000;

/// The longest name of a queue or an exchange, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The queues of one service for one event, all of them quorum queues. A handle: clones share everything.
///
/// | queue | messages in it | leaves by |
/// |---|---|---|
/// | `{service}.{event}` | wait for a consumer | acknowledgement, or `dlx.exchange` after the last attempt |
/// | `{service}.{event}.retry.{milliseconds}`, one for each wait | wait for their next attempt | expiry, back into the first queue |
/// | `dlq.{service}.{event}` | were given up | the dead letter intake |
///
/// ```
/// use std::time::Duration;
/// use seawall_amqp::topology::QueueTopology;
/// let queues = QueueTopology::builder("billing", "order-paid").bind("events", "order.paid").build()?;
/// assert_eq!(queues.queue(), "billing.order-paid");
/// assert_eq!(queues.retry_queue(Duration::from_secs(2)), "billing.order-paid.retry.2000");
/// assert_eq!(queues.dead_letter_queue(), "dlq.billing.order-paid");
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueueTopology {
    pub(super) parts: Arc<Parts>,
}

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) queue: String,
    pub(super) dead_letter_queue: String,
    pub(super) bindings: Vec<Binding>,
    pub(super) max_attempts: u32,
    pub(super) retry_delays: Vec<Duration>,
    pub(super) length_max: Option<u32>,
    pub(super) dead_letters_max: Option<u32>,
}

/// An exchange that the queue takes messages of.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) exchange: String,
    pub(super) kind: ExchangeKind,
    pub(super) routing_key: String,
}

impl QueueTopology {
    /// Begins with the service that consumes and the event that it consumes.
    pub fn builder(service: &str, event: &str) -> QueueTopologyBuilder {
        QueueTopologyBuilder {
            service: service.to_owned(),
            event: event.to_owned(),
            queue: None,
            bindings: Vec::new(),
            max_attempts: MAX_ATTEMPTS,
            retry_delays: RETRY_DELAYS.to_vec(),
            length_max: None,
            dead_letters_max: None,
        }
    }

    /// The queue that is consumed.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.parts.queue
    }

    /// The dead letter queue, whose name is also the routing key of dead letters: `dlq.{service}.{event}`.
    #[must_use]
    pub fn dead_letter_queue(&self) -> &str {
        &self.parts.dead_letter_queue
    }

    /// The number of attempts that a message has, the first one included.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.parts.max_attempts
    }

    /// The waits that there are queues for, the shortest first.
    #[must_use]
    pub fn retry_delays(&self) -> &[Duration] {
        &self.parts.retry_delays
    }

    /// The queue for a wait: that of the shortest wait that is not below it, or that of the longest one.
    #[must_use]
    pub fn retry_queue(&self, wait: Duration) -> String {
        let delays = &self.parts.retry_delays;
        let delay = delays.iter().find(|delay| **delay >= wait).or(delays.last());
        retry_queue(self.queue(), delay.copied().unwrap_or(wait))
    }

    /// The arguments of the queue that is consumed.
    ///
    /// Without `at-least-once` a quorum queue forgets a message before the dead letter queue has it, and a full or absent dead
    /// letter queue loses it. The strategy needs `reject-publish`.
    pub(super) fn queue_arguments(&self) -> FieldTable {
        let mut table = quorum(self.parts.max_attempts - 1, self.parts.length_max);
        set_dead_letter(&mut table, DEAD_LETTER_EXCHANGE, &self.parts.dead_letter_queue);
        table
    }

    /// The arguments of the queue for a wait. The time to live is that of the queue and not of each message: RabbitMQ expires
    /// messages at the head only, so that one with a long wait would hold up all behind it.
    pub(super) fn retry_arguments(&self, delay: Duration) -> FieldTable {
        let mut table = quorum(UNLIMITED_DELIVERIES, None);
        table.insert("x-message-ttl".into(), AMQPValue::LongInt(millis(delay)));
        set_dead_letter(&mut table, "", &self.parts.queue);
        table
    }

    /// The arguments of the dead letter queue. One that is full refuses, and the letter stays in the queue before it.
    pub(super) fn dead_letter_arguments(&self) -> FieldTable {
        quorum(UNLIMITED_DELIVERIES, self.parts.dead_letters_max)
    }
}

pub(super) fn retry_queue(queue: &str, delay: Duration) -> String {
    format!("{queue}.retry.{}", millis(delay))
}

fn millis(delay: Duration) -> i32 {
    i32::try_from(delay.as_millis()).unwrap_or(i32::MAX)
}

fn quorum(delivery_limit: u32, length_max: Option<u32>) -> FieldTable {
    let number = |number: u32| AMQPValue::LongInt(i32::try_from(number).unwrap_or(i32::MAX));
    let mut table = FieldTable::default();
    table.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    table.insert("x-delivery-limit".into(), number(delivery_limit));
    table.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
    if let Some(length_max) = length_max {
        table.insert("x-max-length".into(), number(length_max));
    }
    table
}

fn set_dead_letter(table: &mut FieldTable, exchange: &str, routing_key: &str) {
    let text = |text: &str| AMQPValue::LongString(text.into());
    table.insert("x-dead-letter-exchange".into(), text(exchange));
    table.insert("x-dead-letter-routing-key".into(), text(routing_key));
    table.insert("x-dead-letter-strategy".into(), text("at-least-once"));
}

/// Chooses the queues of a consumer. [`QueueTopology::builder`] creates it.
#[must_use = "call `build` to get the queues"]
#[derive(Debug)]
pub struct QueueTopologyBuilder {
    service: String,
    event: String,
    queue: Option<String>,
    bindings: Vec<Binding>,
    max_attempts: u32,
    retry_delays: Vec<Duration>,
    length_max: Option<u32>,
    dead_letters_max: Option<u32>,
}

impl QueueTopologyBuilder {
    /// Names the queue; `{service}.{event}` unless told.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = Some(queue.into());
        self
    }

    /// Takes messages of a topic exchange whose routing key matches this one (`order.*`, `#`). The exchange is declared if it is
    /// absent. May be called several times.
    pub fn bind(self, exchange: impl Into<String>, routing_key: impl Into<String>) -> Self {
        self.bind_kind(exchange, ExchangeKind::Topic, routing_key)
    }

    /// As [`bind`](QueueTopologyBuilder::bind), with an exchange of another kind.
    pub fn bind_kind(
        mut self,
        exchange: impl Into<String>,
        kind: ExchangeKind,
        routing_key: impl Into<String>,
    ) -> Self {
        self.bindings.push(Binding { exchange: exchange.into(), kind, routing_key: routing_key.into() });
        self
    }

    /// Sets the number of attempts that a message has; [`MAX_ATTEMPTS`] unless told.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Sets the waits that there are queues for; [`RETRY_DELAYS`] unless told. The waits that a processor asks for are rounded up
    /// to them.
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        self.retry_delays = delays.into_iter().collect();
        self
    }

    /// Refuses messages when this many wait; without a limit unless told. Publishers see a transient fault then.
    pub fn length_max(mut self, messages: u32) -> Self {
        self.length_max = Some(messages);
        self
    }

    /// Keeps at most this many dead letters; without a limit unless told. Further ones stay in the queue before it, and use memory
    /// of the server there, until there is room. None is dropped.
    pub fn dead_letters_max(mut self, messages: u32) -> Self {
        self.dead_letters_max = Some(messages);
        self
    }

    /// Checks the settings, and says everything that is wrong with them at once.
    pub fn build(self) -> Result<QueueTopology, ConfigError> {
        let queue = self.queue.unwrap_or_else(|| format!("{}.{}", self.service, self.event));
        let dead_letter_queue = format!("dlq.{}.{}", self.service, self.event);
        let mut retry_delays = self.retry_delays;
        retry_delays.sort_unstable();
        retry_delays.dedup();
        let longest = retry_delays.last().map_or(0, |delay| retry_queue(&queue, *delay).len());
        let too_long = |bytes: usize| bytes > NAME_BYTES_MAX;
        let bindings = &self.bindings;
        let name_is_wrong =
            |name: &str| name.is_empty() || too_long(name.len()) || name.contains(char::is_control);
        let checks = [
            (self.service.is_empty(), "service", "it is empty; write the name of the service that consumes"),
            (self.event.is_empty(), "event", "it is empty; write the name of the event that is consumed"),
            (name_is_wrong(&queue), "queue", "a name has 1 to 255 bytes and no control characters"),
            (queue.starts_with("amq."), "queue", "names that begin with `amq.` belong to the server"),
            (
                too_long(longest) || too_long(dead_letter_queue.len()),
                "queue",
                "with the suffixes of its retry queues and the prefix of its dead letter queue the name is above 255 bytes; choose a shorter one",
            ),
            (
                bindings.iter().any(|binding| name_is_wrong(&binding.exchange)),
                "bind",
                "the name of an exchange has 1 to 255 bytes and no control characters",
            ),
            (
                bindings.iter().any(|binding| too_long(binding.routing_key.len())),
                "bind",
                "a routing key has up to 255 bytes",
            ),
            (self.max_attempts == 0, "max_attempts", "a message has at least one attempt"),
            (self.max_attempts > UNLIMITED_DELIVERIES, "max_attempts", "write a number up to 1000000000"),
            (retry_delays.is_empty(), "retry_delays", "there is at least one wait; write one such as 1 s"),
            (
                retry_delays.iter().any(|delay| delay.as_millis() == 0),
                "retry_delays",
                "a wait is at least 1 ms",
            ),
            (
                retry_delays.iter().any(|delay| delay.as_millis() > i32::MAX as u128),
                "retry_delays",
                "a wait is at most 24 days",
            ),
            (self.length_max == Some(0), "length_max", "it is zero; leave it out for no limit"),
            (self.dead_letters_max == Some(0), "dead_letters_max", "it is zero; leave it out for no limit"),
        ];
        let wrong = checks.into_iter().filter(|(wrong, ..)| *wrong);
        let problems: Vec<_> = wrong.map(|(_, setting, reason)| (setting, reason.to_owned())).collect();
        if !problems.is_empty() {
            return Err(ConfigError::new("the queues of RabbitMQ", problems));
        }
        Ok(QueueTopology {
            parts: Arc::new(Parts {
                queue,
                dead_letter_queue,
                bindings: self.bindings,
                max_attempts: self.max_attempts,
                retry_delays,
                length_max: self.length_max,
                dead_letters_max: self.dead_letters_max,
            }),
        })
    }
}
