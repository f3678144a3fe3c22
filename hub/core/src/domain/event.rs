//! What has happened somewhere, as it was told to the hub.

use bytes::Bytes;

use super::event_type::EventType;
use super::time::Millis;

/// An accepted event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The id that the sender gave it. The same id from the same source is the same event.
    pub id: String,
    pub kind: EventType,
    /// The source that sent it.
    pub source: String,
    /// The payload as it was received: JSON.
    pub payload: Bytes,
    /// The hash of the content. The same id with another hash is an error of the sender.
    pub fingerprint: [u8; 32],
    /// When the event was accepted.
    pub accepted: Millis,
    /// The `traceparent` of the event, if it has one.
    pub trace: Option<String>,
    /// The number of rules that matched its type.
    pub considered: u32,
    /// The number of these rules whose filter rejected it.
    pub filtered: u32,
}

/// The maximum length of an event id.
pub const EVENT_ID_MAX: usize = 200;
