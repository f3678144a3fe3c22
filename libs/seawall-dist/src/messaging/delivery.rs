//! A message as a broker delivered it.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use crate::Message;

/// The header with the event id, for brokers that have no field of their own for it.
pub const EVENT_ID_HEADER: &str = "event-id";
/// The header with the event type, for brokers that have no field of their own for it.
pub const EVENT_TYPE_HEADER: &str = "event-type";
/// The header with the aggregate id, for brokers that have no field of their own for it.
pub const AGGREGATE_ID_HEADER: &str = "aggregate-id";

/// A message as a broker delivered it: with the place that it came from and the number of this attempt.
///
/// ```
/// use seawall_dist::Message;
/// use seawall_dist::messaging::Delivery;
/// let message = Message::new("OrderPaid", "order-17", "{}").with_topic("orders");
/// let delivery = Delivery::new(message, "orders", 1).with_position("partition", 3).with_position("offset", 1207);
/// assert_eq!(delivery.position("offset"), Some("1207"));
/// assert_eq!(delivery.position_text(), "partition=3 offset=1207");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    message: Message,
    place: Arc<str>,
    attempt: u32,
    positions: Vec<(&'static str, PositionText)>,
}

/// A text that needs no memory of its own if it is short. Positions are numbers mostly, and every message has some.
#[derive(Clone)]
enum PositionText {
    Short { bytes: [u8; SHORT_MAX], length: u8 },
    Long(String),
}

/// The number of bytes of a short text: more than any number of 64 bits has.
const SHORT_MAX: usize = 22;

impl PositionText {
    fn new(value: impl fmt::Display) -> Self {
        let mut bytes = [0; SHORT_MAX];
        let mut buffer = &mut bytes[..];
        if write!(buffer, "{value}").is_err() {
            return PositionText::Long(value.to_string());
        }
        let rest = buffer.len();
        PositionText::Short { bytes, length: (SHORT_MAX - rest) as u8 }
    }

    fn as_str(&self) -> &str {
        match self {
            PositionText::Short { bytes, length } => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default()
            }
            PositionText::Long(text) => text,
        }
    }
}

impl PartialEq for PositionText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for PositionText {}

impl fmt::Debug for PositionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Delivery {
    /// Creates a delivery from a place: a queue, a topic, a stream. Attempts count from 1.
    pub fn new(message: Message, place: impl Into<Arc<str>>, attempt: u32) -> Self {
        Delivery { message, place: place.into(), attempt: attempt.max(1), positions: Vec::new() }
    }

    /// Adds where in the place the message is: its partition and offset, its sequence, its tag. Log lines have it.
    #[must_use]
    pub fn with_position(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.positions.push((name, PositionText::new(value)));
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The queue, topic or stream that the message came from.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The number of this attempt, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The part of the position with this name.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<&str> {
        self.positions.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The position as text: `partition=3 offset=1207`; empty if the broker has none.
    #[must_use]
    pub fn position_text(&self) -> String {
        let parts = self.positions.iter().map(|(name, value)| format!("{name}={}", value.as_str()));
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The trace that the message belongs to, by its header `traceparent`.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        self.message.header("traceparent").and_then(seawall::telemetry::trace_id_of)
    }

    /// What identifies the message: its event id, or its place and position if it has none. `None` if it has neither.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        match (self.message.event_id(), self.positions.is_empty()) {
            ("", true) => None,
            ("", false) => Some(format!("{} {}", self.place, self.position_text())),
            (id, _) => Some(id.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-4: positions are kept as they are said, short and long.
    #[test]
    fn adp_4_positions_are_the_texts_that_were_said() {
        let long = "x".repeat(100);
        let message = Message::received("", "", "", "");
        let delivery = Delivery::new(message, "queue", 0)
            .with_position("offset", i64::MIN)
            .with_position("sequence", u64::MAX)
            .with_position("deliveryTag", &long)
            .with_position("partition", "");
        assert_eq!(delivery.position("offset"), Some("-9223372036854775808"));
        assert_eq!(delivery.position("sequence"), Some("18446744073709551615"));
        assert_eq!(delivery.position("deliveryTag"), Some(long.as_str()));
        assert_eq!((delivery.position("partition"), delivery.position("tag")), (Some(""), None));
        assert_eq!((delivery.attempt(), delivery.clone() == delivery), (1, true));
    }
}
