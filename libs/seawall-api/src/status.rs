//! The overview, the states of services and the history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{CircuitState, DurationText, Name, PageQuery, Timestamp, WaitFields};

words! {
    /// What needs attention.
    AttentionKind {
        /// A circuit.
        Circuit = "circuit",
        /// Open dead letters.
        DeadLetters = "deadLetters",
        /// A paused service.
        Paused = "paused",
        /// Late deliveries.
        Late = "late",
        /// A disabled rule.
        Rule = "rule",
    }

    /// How severe an item is.
    AttentionSeverity {
        /// It needs attention now.
        Bad = "bad",
        /// It can wait.
        Warn = "warn",
    }

    /// The order of the states of services.
    StatusSort {
        /// By name.
        Name = "name",
        /// Problems first.
        Trouble = "trouble",
    }

    /// A time range in minutes.
    HistoryRange {
        /// Five minutes.
        Five = "5",
        /// One hour.
        Sixty = "60",
    }
}

/// The state of the hub at a glance
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Start time of the hub
    pub since: Timestamp,
    /// Version of the hub
    pub version: String,
    /// Public URL of the hub, used for links in alerts
    pub public_url: Option<String>,
    /// Retention times; null means forever
    pub keeps: Retention,
    /// Counts of services
    pub services: ServiceTotals,
    /// Null for a key that is restricted to some services
    pub events: Option<EventTotals>,
    /// Counts of deliveries
    pub deliveries: DeliveryTotals,
    /// Counts of dead letters
    pub dead_letters: DeadLetterTotals,
    /// Items that need attention, most severe first, at most 50
    pub attention: Vec<AttentionItem>,
}

/// Retention times
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Retention of events, counted from their last delivery
    pub delivered: Option<DurationText>,
    /// Retention of deleted dead letters
    pub discarded: Option<DurationText>,
    /// Retention of the audit log
    pub audit: Option<DurationText>,
}

/// Counts of services
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceTotals {
    /// Number of services
    pub total: u64,
    /// Counts by state; `none` for services without a circuit breaker
    pub by_circuit: BTreeMap<String, u64>,
    /// Number of paused services
    pub paused: u64,
}

/// Counts of events
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventTotals {
    /// Accepted events per second, over the last five seconds
    pub per_second: f64,
    /// Accepted events since the start
    pub total: u64,
}

/// Counts of deliveries
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeliveryTotals {
    /// Deliveries per second, over the last five seconds
    pub per_second: f64,
    /// Attempts and calls per second
    pub sends_per_second: f64,
    /// Waiting deliveries, as listed with `state=waiting`. Those in the store are counted up to 100 000 per service
    pub waiting: u64,
    /// Deliveries in progress: the request is being sent or its result is being stored
    pub in_flight: u64,
    /// Due time of the oldest delivery that is due
    pub oldest_due_at: Option<Timestamp>,
    /// The delay of the oldest delivery that is due, in seconds
    pub oldest_due_seconds: u64,
    /// Success rate of the attempts of the last five minutes, 0 to 1; null if there were none
    pub success_rate: Option<f64>,
}

/// Counts of dead letters
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterTotals {
    /// Number of open dead letters
    pub open: u64,
    /// Counts by service
    pub by_service: Vec<ServiceDeadLetters>,
}

/// Dead letters of a service
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceDeadLetters {
    /// Name of the service
    pub service: Name,
    /// Number of its open dead letters
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub open: u64,
}

/// Something that needs attention
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"kind": "circuit", "severity": "bad", "service": "billing", "rule": null, "since": "2026-11-15T16:16:23.497Z", "waiting": 120, "waitsBecause": "circuit open, next probe in 3 s", "deadLetters": 0, "circuit": "open", "message": "its circuit is open: too many attempts failed"})))]
#[serde(rename_all = "camelCase")]
pub struct AttentionItem {
    /// The kind of item
    pub kind: AttentionKind,
    /// Its severity
    pub severity: AttentionSeverity,
    /// The service that it concerns
    pub service: Option<Name>,
    /// The rule that it concerns
    pub rule: Option<Name>,
    /// Its beginning
    pub since: Option<Timestamp>,
    /// Number of waiting deliveries
    pub waiting: u64,
    /// What they wait for and until when; for people: the wording may change
    pub waits_because: Option<String>,
    /// Number of dead letters
    pub dead_letters: u64,
    /// The state of the circuit
    pub circuit: Option<CircuitState>,
    /// For people: the wording may change
    pub message: String,
}

/// The state of a service
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Name of the service
    pub name: Name,
    /// Its base URL
    pub address: String,
    /// True if its deliveries are paused
    pub paused: bool,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Waiting deliveries, as listed with `state=waiting`. Those in the store are counted up to 100 000 per service
    pub waiting: u64,
    /// Deliveries in progress: the request is being sent or its result is being stored
    pub in_flight: u64,
    /// Number of open dead letters
    pub dead_letters: u64,
    /// Due time of the oldest delivery that is due
    pub oldest_due_at: Option<Timestamp>,
    /// Success rate of the attempts of the last five minutes, 0 to 1; null if there were none
    pub success_rate: Option<f64>,
    /// Attempts per second
    pub sends_per_second: f64,
    /// Attempts per five seconds of the last five minutes, oldest first
    pub sends: Vec<u64>,
    /// What its deliveries wait for.
    #[serde(flatten)]
    pub wait: WaitFields,
}

/// A page of the states of services
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatusPage {
    /// The services
    pub services: Vec<ServiceStatus>,
    /// `page_token` of the next page; empty for the last page
    pub next_page_token: String,
    /// Number of services on all pages
    pub total: u64,
}

/// Which services are listed
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatusQuery {
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Only those with this text in their name or address
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub search: Option<String>,
    /// Only those whose circuit is in this state
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit: Option<CircuitState>,
    /// Sort by name, or problems first
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "name")))]
    pub sort: Option<StatusSort>,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}

/// The history of the last minutes
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Length of an interval
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub seconds_per_point: u64,
    /// Oldest first; fewer right after the start of the hub
    pub points: Vec<HistoryPoint>,
}

/// One interval of the history
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryPoint {
    /// End of the interval
    pub at: Timestamp,
    /// Length of the interval; the last one may be incomplete
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub seconds: u64,
    /// Accepted events; null for a single service
    pub events: Option<u64>,
    /// Attempts of deliveries and calls
    pub sends: u64,
    /// Number of successful deliveries
    pub delivered: u64,
    /// Dead-lettered deliveries
    pub failed: u64,
    /// Scheduled retries
    pub retried: u64,
    /// Latency in milliseconds; null if there were no attempts
    pub p50_ms: Option<f64>,
    /// Latency in milliseconds; null if there were no attempts
    pub p95_ms: Option<f64>,
    /// Failed attempts by class
    pub errors: FaultCounts,
}

/// Failed attempts by class
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FaultCounts {
    /// The service rejected the request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business: Option<u64>,
    /// The connection failed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<u64>,
    /// There was no response in time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The response could not be read
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u64>,
    /// The service failed
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<u64>,
}

/// Which history is returned
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryQuery {
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Time range: 5 minutes in points of 5 seconds, or 60 minutes in points of 30 seconds
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "5")))]
    pub minutes: Option<HistoryRange>,
}
