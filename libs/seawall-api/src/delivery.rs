//! Deliveries.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{DeliveryId, Headers, Name, PageQuery, Timestamp, WaitFields};

words! {
    /// The state of a delivery.
    DeliveryState {
        /// It waits for a free slot.
        Pending = "pending",
        /// The request is being sent or its result is being stored.
        InFlight = "inFlight",
        /// It waits for its next attempt.
        Waiting = "waiting",
        /// It is held by a disabled rule or a paused service.
        Held = "held",
        /// The service accepted it.
        Delivered = "delivered",
        /// It is a dead letter.
        DeadLettered = "deadLettered",
    }

    /// The states by which a list can be filtered.
    DeliveryStateFilter {
        /// Deliveries that wait for a free slot.
        Pending = "pending",
        /// Deliveries whose request is being sent.
        InFlight = "inFlight",
        /// Deliveries that wait for their next attempt.
        Waiting = "waiting",
        /// Deliveries that are held.
        Held = "held",
        /// Deliveries that the service accepted.
        Delivered = "delivered",
        /// Dead letters.
        DeadLettered = "deadLettered",
        /// All deliveries in progress.
        Open = "open",
    }

    /// The reason why a delivery was dead-lettered.
    DeadLetterReason {
        /// The service rejected it permanently.
        Refused = "refused",
        /// The service answered 410 Gone.
        Gone = "gone",
        /// The request could not be rendered or sent.
        Impossible = "impossible",
        /// All attempts failed.
        Attempts = "attempts",
        /// Its maximum age is reached.
        Age = "age",
        /// Its service or rule was deleted.
        Deleted = "deleted",
        /// It crashed the hub.
        Poison = "poison",
    }
}

/// A delivery
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Its id
    pub id: DeliveryId,
    /// Its state
    pub state: DeliveryState,
    /// Event id
    pub event: String,
    /// The rule that made it
    pub rule: Name,
    /// 0 for a queued gateway call, which has no rule
    pub rule_version: u64,
    /// The service that receives it
    pub service: Name,
    /// Reason for dead-lettering; null while it is none
    pub reason: Option<DeadLetterReason>,
    /// The time of acceptance
    pub accepted_at: Timestamp,
    /// Time of the next attempt, if it waits for that
    pub due_at: Option<Timestamp>,
    /// Number of failed attempts
    pub failures: u64,
    /// Number of failures that count towards `maxAttempts`
    pub counted: u64,
    /// The ordering key, if its rule has one
    pub ordering_key: Option<String>,
    /// The dead letter that it replays
    pub replay_of: Option<DeliveryId>,
    /// What it waits for.
    #[serde(flatten)]
    pub wait: WaitFields,
}

/// A delivery with its attempts
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeliveryWithAttempts {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// Oldest first
    pub attempts: Vec<Attempt>,
}

/// What was sent in an attempt. Secrets are removed
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// Method and URL
    pub line: String,
    /// Header names and values
    pub headers: Headers,
}

/// An attempt
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// The time at which it began
    pub at: Timestamp,
    /// Its duration in microseconds
    pub took_micros: u64,
    /// HTTP status; null if there was no response
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub status: Option<u16>,
    /// The error, if it failed
    pub error: Option<String>,
    /// Secrets are removed
    pub sent: Option<SentRequest>,
    /// Headers of the response
    pub answer_headers: Option<Headers>,
    /// Start of the response body
    pub answer: Option<String>,
}

/// A page of deliveries
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeliveryPage {
    /// The deliveries, newest first
    pub deliveries: Vec<Delivery>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// Which deliveries are listed
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeliveryQuery {
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Only of this rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Name>,
    /// Only of the event with this id
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub event: Option<String>,
    /// Only in this state; `open` means all in progress
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DeliveryStateFilter>,
    /// Only those dead-lettered for this reason
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DeadLetterReason>,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}
