//! Events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
#[cfg(feature = "schema")]
use serde_json::json;

use crate::word::words;
use crate::{DeliveryId, EventId, EventPattern, EventType, PageQuery, Timestamp};

/// An event to accept. With `Idempotency-Key` the id is optional
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EventInput", example = serde_json::json!({"id": "evt-1", "type": "order.created", "data": {"id": "A-7", "total": 120.5}})))]
#[serde(rename_all = "camelCase")]
pub struct EventInput<D = Value> {
    /// Event id; an event with a known id is a duplicate
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EventId>,
    /// Words separated by dots: visible ASCII characters without asterisks
    pub r#type: EventType,
    /// Where the event comes from
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "api")))]
    pub source: Option<String>,
    /// Event time; defaults to the time of acceptance
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// What the event is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Event data, nested at most 100 levels deep
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<D>,
}

impl<D> EventInput<D> {
    /// An event with its data. The id makes it safe to send the event again.
    pub fn new(id: impl Into<EventId>, r#type: impl Into<EventType>, data: D) -> Self {
        let (id, r#type, data) = (Some(id.into()), r#type.into(), Some(data));
        Self { id, r#type, source: None, time: None, subject: None, data }
    }
}

/// A batch with invalid fields is rejected as a whole
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EventBatch", example = serde_json::json!({"events": [{"id": "evt-1", "type": "order.created"}]})))]
#[serde(rename_all = "camelCase")]
pub struct EventBatch<D = Value> {
    /// The events, each with an id
    #[cfg_attr(feature = "schema", schemars(length(max = 1_000), schema_with = "events_with_ids"))]
    pub events: Vec<EventInput<D>>,
}

/// The schema of the events of a batch. Their ids are judged one by one, after the batch was read.
#[cfg(feature = "schema")]
fn events_with_ids(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut event = <EventInput as schemars::JsonSchema>::json_schema(generator);
    event.insert("required".into(), json!(["id", "type"]));
    let about = "As for a single event; an event with an invalid id is rejected without the others";
    if let Some(fields) = event.get_mut("properties") {
        fields["id"] = json!({"type": "string", "description": about});
    }
    schemars::json_schema!({"type": "array", "items": event})
}

/// An accepted event, which is on the disk
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({
    "id": "evt-1", "deliveries": ["dlv_00000000000000010000000000000007"], "deduplicated": false, "filtered": 0, "unmatched": false, "held": 0,
})))]
#[serde(rename_all = "camelCase")]
pub struct AcceptedEvent {
    /// Event id; that of the first event if the idempotency key was used before
    pub id: String,
    /// Ids of its deliveries
    pub deliveries: Vec<DeliveryId>,
    /// True for a duplicate of an accepted event
    pub deduplicated: bool,
    /// Number of rules that filtered it out
    pub filtered: u64,
    /// True if no rule matches its type
    pub unmatched: bool,
    /// Number of deliveries that wait for a disabled rule
    pub held: u64,
}

words! {
    /// Why an event of a batch was refused.
    RefusalCode {
        /// Its id was used before with different content.
        OtherContent = "otherContent",
        /// It is invalid.
        Invalid = "invalid",
    }
}

/// Why an event of a batch was refused
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// For programs: the meaning never changes
    pub code: RefusalCode,
    /// For people: the wording may change
    pub message: String,
}

/// A refused event of a batch
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RefusedEvent {
    /// Event id
    pub id: String,
    /// The reason
    pub error: Refusal,
}

/// The result of one event of a batch
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::common::one_of))]
#[serde(untagged)]
pub enum BatchResult {
    /// The event was accepted, or is a duplicate of one that was.
    Accepted(AcceptedEvent),
    /// The event was refused.
    Refused(RefusedEvent),
}

/// The results of a batch
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AcceptedBatch {
    /// Number of accepted events
    pub accepted: u64,
    /// Number of refused events
    pub refused: u64,
    /// One result per event, in the same order
    pub results: Vec<BatchResult>,
}

/// The event as rules see it, and as the default request body
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventContent {
    /// Event id
    pub id: String,
    /// Event type
    pub r#type: EventType,
    /// Where the event comes from
    pub source: String,
    /// Event time
    pub time: String,
    /// What the event is about
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Extension attributes of CloudEvents
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<BTreeMap<String, Value>>,
    /// Event data
    pub data: Value,
}

/// A stored event
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The event as rules see it, and as the default request body
    pub event: EventContent,
    /// The time of acceptance
    pub accepted_at: Timestamp,
    /// W3C trace context of the event
    pub trace: Option<String>,
    /// Number of rules that match its type
    pub rules_considered: u64,
    /// Number of rules that filtered it out
    pub rules_filtered: u64,
    /// True if no rule matches its type
    pub unmatched: bool,
}

/// A page of events
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The events, newest first
    pub events: Vec<Event>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// Which events are listed
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    /// Only events of this type
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<EventPattern>,
    /// Only events from this source
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub source: Option<String>,
    /// Only events that no rule matched
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<bool>,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}
