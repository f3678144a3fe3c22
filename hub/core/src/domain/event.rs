//! What has happened somewhere, as it was told to the hub.

use bytes::Bytes;

use super::event_type::EventType;
use super::time::Millis;

/// An event that the hub accepts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Who sent it calls it so; the same id is the same event.
    pub id: String,
    /// Its kind.
    pub kind: EventType,
    /// Where it comes from.
    pub source: String,
    /// As it came: JSON.
    pub payload: Bytes,
    /// Of what was sent: the same id with another one is a mistake.
    pub fingerprint: [u8; 32],
    /// When it was accepted.
    pub accepted: Millis,
    /// The trace that it belongs to, if it said so.
    pub trace: Option<String>,
    /// How many rules are for its kind.
    pub considered: u32,
    /// And how many of them had a filter that did not take it.
    pub filtered: u32,
}

/// The longest id.
pub const EVENT_ID_MAX: usize = 200;
