//! Events before they are accepted, and the result of accepting them.

use std::fmt;

use bytes::Bytes;
use serde_json::Value as Json;

use super::rule_set::{MatchCounts, RuleTiming};
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::domain::event_type::EventType;
use crate::domain::hash;
use crate::port::store::StoreError;
use crate::service::dispatch::PendingDelivery;

/// An event before it is accepted.
#[derive(Clone, Debug)]
pub struct IncomingEvent {
    /// The id that the sender gave it.
    pub id: String,
    pub kind: EventType,
    /// The source that sent it.
    pub source: String,
    /// When it happened, according to the sender.
    pub time: Option<String>,
    /// The subject within the source.
    pub subject: Option<String>,
    /// Other attributes of the event.
    pub extensions: Vec<(String, Json)>,
    pub data: EventData,
    /// The trace that it belongs to.
    pub trace: Option<String>,
    /// The idempotency key of the request.
    pub key: Option<String>,
}

/// The `data` of an event as JSON text. It is parsed only if a rule reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventData(String);

impl EventData {
    /// Wraps a text that is known to be JSON.
    #[must_use]
    pub fn of_text(text: String) -> Self {
        EventData(text)
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&Json> for EventData {
    fn from(value: &Json) -> Self {
        EventData(value.to_string())
    }
}

/// The result of accepting an event.
#[derive(Clone, Debug)]
pub struct AcceptedEvent {
    /// The id of the event; that of the first one, if it was accepted before under the same key.
    pub id: String,
    /// The deliveries of the event.
    pub deliveries: Vec<DeliveryId>,
    /// Whether it was accepted before, with the same content.
    pub deduplicated: bool,
    /// The deliveries to send now, if it is new.
    pub started: Vec<PendingDelivery>,
    /// How many rules matched and how many rejected it.
    pub counts: MatchCounts,
    /// The number of deliveries that a disabled rule holds.
    pub held: u32,
    /// How long the rules took, if it is new and that is measured.
    pub timing: Option<RuleTiming>,
}

/// The reason why an event was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AcceptError {
    /// The id is invalid.
    BadId(&'static str),
    /// An event with this id has another content, or the key was used for another event.
    OtherContent,
    /// The store refused or failed.
    Store(StoreError),
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcceptError::BadId(reason) => write!(f, "invalid event id: {reason}"),
            AcceptError::OtherContent => {
                f.write_str("there is an event of this id, or under this key, with another content")
            }
            AcceptError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AcceptError {}

/// Returns the event as it is stored and sent. It is assembled from texts, because the data is one already.
pub(in crate::service) fn payload(event: &IncomingEvent, time: &str) -> Bytes {
    let data = event.data.as_str();
    let mut out = String::with_capacity(data.len() + 160);
    let field = |out: &mut String, name: &str, value: &str| {
        out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":");
        out.push_str(value);
    };
    let text = |value: &str| Json::from(value).to_string();
    field(&mut out, "id", &text(&event.id));
    field(&mut out, "type", &text(event.kind.as_str()));
    field(&mut out, "source", &text(&event.source));
    field(&mut out, "time", &text(time));
    if let Some(subject) = &event.subject {
        field(&mut out, "subject", &text(subject));
    }
    if !event.extensions.is_empty() {
        let extensions: Json = event.extensions.iter().cloned().collect();
        field(&mut out, "extensions", &extensions.to_string());
    }
    field(&mut out, "data", data);
    out.push('}');
    out.into_bytes().into()
}

/// Hashes the content without time and id, so that a repeated event has the same hash.
pub(in crate::service) fn fingerprint(event: &IncomingEvent) -> [u8; 32] {
    let subject = event.subject.as_deref().unwrap_or_default();
    let first = [event.kind.as_str(), &event.source, subject];
    let values: Vec<String> = event.extensions.iter().map(|(_, value)| value.to_string()).collect();
    let extensions = event.extensions.iter().zip(&values).flat_map(|((name, _), value)| [&**name, value]);
    hash::parts(first.into_iter().chain(extensions).chain([event.data.as_str()]))
}

/// Whether two events have the same content: the order of fields and spaces do not matter.
pub(in crate::service) fn has_same_content(one: &Event, other: &Event) -> bool {
    let whole = |event: &Event| serde_json::from_slice::<Json>(&event.payload).unwrap_or_default();
    let (one, other) = (whole(one), whole(other));
    ["type", "source", "subject", "extensions", "data"].iter().all(|field| one[field] == other[field])
}
