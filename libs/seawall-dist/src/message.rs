//! Messages, and those who publish them.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use seawall::Fault;

use crate::random;

/// A message for a broker, or for whatever a [`Publisher`] stands for.
///
/// ```
/// use seawall_dist::Message;
/// let paid = Message::new("OrderPaid", "order-17", br#"{"total": 20}"#).with_topic("orders").with_header("traceparent", "00-…");
/// assert_eq!(paid.aggregate_id(), "order-17");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    event_id: String,
    event_type: String,
    topic: String,
    aggregate_id: String,
    headers: Vec<(String, String)>,
    payload: Vec<u8>,
}

impl Message {
    /// Creates a message with a random event id and no topic.
    ///
    /// The aggregate id is the key of the order: messages of one topic and one aggregate are published in the order in which
    /// they were stored. Use a random id for messages that need no order.
    pub fn new(
        event_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        payload: impl Into<Vec<u8>>,
    ) -> Self {
        Message::received(random_id(), event_type, aggregate_id, payload)
    }

    /// Creates a message that was received: with the event id that it came with, which may be empty, and no topic.
    pub fn received(
        event_id: impl Into<String>,
        event_type: impl Into<String>,
        aggregate_id: impl Into<String>,
        payload: impl Into<Vec<u8>>,
    ) -> Self {
        Message {
            event_id: event_id.into(),
            event_type: event_type.into(),
            topic: String::new(),
            aggregate_id: aggregate_id.into(),
            headers: Vec::new(),
            payload: payload.into(),
        }
    }

    /// Sets the event id. Consumers recognise repeated messages by it.
    #[must_use]
    pub fn with_event_id(mut self, event_id: impl Into<String>) -> Self {
        self.event_id = event_id.into();
        self
    }

    /// Sets the topic, subject, exchange or address. A message without one goes where its publisher decides.
    #[must_use]
    pub fn with_topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = topic.into();
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The id by which consumers recognise a repeated message.
    #[must_use]
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// What happened, such as `OrderPaid`.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.event_type
    }

    /// The topic, or an empty text.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// What it happened to, such as an order's number: the key within the topic.
    #[must_use]
    pub fn aggregate_id(&self) -> &str {
        &self.aggregate_id
    }

    /// The headers, in the order in which they were added.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// A random UUID (version 4).
fn random_id() -> String {
    let (high, low) = (random::word(), random::word());
    let high = high & !0xF000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

/// The future of [`Publisher::publish`]: one result for each message, in the order of the messages.
pub type PublishFuture<'a> = Pin<Box<dyn Future<Output = Vec<Result<(), PublishError>>> + Send + 'a>>;

/// Publishes messages: an adapter of Kafka, NATS, AMQP, HTTP.
pub trait Publisher: Send + Sync {
    /// Publishes the messages and returns one result for each, in their order. A message without a result counts as failed.
    ///
    /// A result is `Ok` when the broker has acknowledged the message, and not earlier. The future may be dropped at any
    /// await; what happened to its messages is then unknown, and they are published again.
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a>;

    /// Returns true if one call may hold several messages of one aggregate: the publisher then keeps their order, and after
    /// a message that failed it publishes no other of that aggregate in the same call.
    ///
    /// The default is false: every call has at most one message of each aggregate, so that the publisher may send all of
    /// them at once.
    fn keeps_order(&self) -> bool {
        false
    }
}

/// A message was not published, or nobody knows whether it was.
///
/// Its [`source`](Error::source) is the [`Fault`], which says whether another attempt may help.
#[derive(Clone, Debug)]
pub struct PublishError {
    fault: Fault,
    text: String,
}

impl PublishError {
    /// Creates the error of a message, with what it means.
    pub fn new(fault: Fault, text: impl Into<String>) -> Self {
        PublishError { fault, text: text.into() }
    }

    /// Creates the error from that of a client, judged by its causes as a guard does.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        PublishError { fault: Fault::of_error(error), text: error.to_string() }
    }

    /// What the failure means.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for PublishError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_ids_are_uuids_and_differ() {
        let ids: std::collections::HashSet<String> = (0..10_000).map(|_| random_id()).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids.iter().take(100) {
            assert_eq!((id.len(), &id[14..15]), (36, "4"), "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        }
    }
}
