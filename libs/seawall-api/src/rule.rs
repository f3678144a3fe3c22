//! Rules and their evaluation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::words;
use crate::{DurationText, EventId, EventInput, EventPattern, Filter, Headers, Name, Template, Timestamp};

words! {
    /// Which failures count towards the limit of attempts.
    FailureCounting {
        /// Only failures with a response count.
        Answered = "answered",
        /// All failures count.
        All = "all",
    }

    /// What a dead letter does to the later deliveries with its ordering key.
    OnDeadLetter {
        /// They continue.
        Continue = "continue",
        /// They are held.
        Hold = "hold",
    }
}

/// A rule: which events it matches and the request that it renders
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({
    "name": "invoices", "eventType": "order.*", "filter": "data.total > 100", "service": "billing", "method": "POST",
    "path": "/invoices/{{ data.id }}", "headers": {"x-order": "{{ data.id }}"},
    "body": {"order": "{{ data.id }}", "amount": "{{ data.total }}"},
})))]
#[serde(rename_all = "camelCase")]
pub struct RuleSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "invoices"})))]
    pub name: Name,
    /// Event type, `order.*` for all types below `order`, or `*` for all
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hint": "order.* for all types below order, * for all", "placeholder": "order.*"})))]
    pub event_type: EventPattern,
    /// Service that receives the request
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"from": "services", "hint": ""})))]
    pub service: Name,
    /// Condition over `id`, `type`, `source`, `time`, `subject`, `extensions` and `data`
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "data.total > 100", "wide": true})))]
    pub filter: Option<Filter>,
    /// GET, POST, PUT, PATCH, DELETE or HEAD
    #[serde(default = "post")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"words": ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"], "hint": ""})))]
    pub method: String,
    /// Template of the path below the address of the service
    #[serde(default = "root")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hint": "template; below the address of the service", "placeholder": "/invoices/{{ data.id }}"})))]
    pub path: Template,
    /// Header names and templates of their values
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-merge" = "deep", "x-form" = {"widget": "pairs", "placeholder": "x-order: {{ data.id }}"})))]
    pub headers: Headers,
    /// JSON value whose strings may contain expressions; defaults to the event
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"widget": "json", "placeholder": r#"{"order": "{{ data.id }}", "amount": "{{ data.total }}"}"#})))]
    pub body: Option<Value>,
    /// Retry settings of the deliveries
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-merge" = "deep", "x-always" = true, "x-form" = {"label": "Retries", "hint": "attempts, back-off and maximum age"})))]
    pub delivery: Option<DeliverySettings>,
    /// Deliveries with the same ordering key are sent in order
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-merge" = "deep", "x-form" = {"hint": "none, unless there is a key"})))]
    pub ordering: Option<OrderingSettings>,
    /// Matching events are held while it is false
    #[serde(default = "yes")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "State", "hint": "", "labels": {"true": "enabled", "false": "disabled: matching events are held"}})))]
    pub enabled: bool,
}

pub(crate) fn yes() -> bool {
    true
}

fn post() -> String {
    "POST".to_owned()
}

fn root() -> Template {
    Template::new("/")
}

impl RuleSpec {
    /// A rule that posts matching events to the address of a service.
    pub fn new(name: impl Into<Name>, event_type: impl Into<EventPattern>, service: impl Into<Name>) -> Self {
        Self {
            name: name.into(),
            event_type: event_type.into(),
            service: service.into(),
            filter: None,
            method: post(),
            path: root(),
            headers: Headers::new(),
            body: None,
            delivery: None,
            ordering: None,
            enabled: true,
        }
    }
}

/// Retry settings of the deliveries
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"maxAttempts": 10, "maxAge": "2d"})))]
#[serde(rename_all = "camelCase")]
pub struct DeliverySettings {
    /// Defaults to the policy of the service
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000), extend("x-form" = {"label": "Maximum attempts", "placeholder": "5"})))]
    pub max_attempts: Option<u32>,
    /// Maximum age, after which it is dead-lettered
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"label": "Maximum age", "hint": "then it is dead-lettered", "placeholder": "1d"})))]
    pub max_age: Option<DurationText>,
    /// Initial back-off; it doubles with each failure, with jitter
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"label": "Initial back-off", "hint": "doubles with each failure, with jitter", "placeholder": "1s"})))]
    pub base: Option<DurationText>,
    /// Maximum back-off
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"label": "Maximum back-off", "hint": "", "placeholder": "15m"})))]
    pub cap: Option<DurationText>,
    /// Which failures count towards the limit: only answered ones, or all
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "answered", "x-always" = true, "x-form" = {"label": "Count failures", "hint": "", "labels": {"answered": "only answered failures", "all": "all failures"}})))]
    pub count: Option<FailureCounting>,
}

/// The order of deliveries
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OrderingSettings {
    /// Template of the ordering key: deliveries with the same key are sent in order
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Ordering key", "hint": "template; deliveries with the same key are sent in order", "placeholder": "{{ data.customer.id }}"})))]
    pub key: Template,
    /// Whether a dead letter holds the later deliveries of its key
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "continue", "x-always" = true, "x-form" = {"label": "After a dead letter", "hint": "", "labels": {"continue": "later deliveries continue", "hold": "later deliveries wait"}})))]
    pub on_dead_letter: Option<OnDeadLetter>,
}

/// A rule as the hub returns it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// What people have written.
    #[serde(flatten)]
    pub spec: RuleSpec,
    /// Increases with every change; also in the header `ETag`
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub version: u64,
    /// The time of the last change
    pub changed_at: Timestamp,
    /// Reason for which it is disabled
    pub note: Option<String>,
}

/// A request as sent on the wire, without secrets
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The method of the request
    pub method: String,
    /// The path with its query
    pub path: String,
    /// Header names and values
    pub headers: Headers,
    /// Null if the service does not exist
    pub url: Option<String>,
    /// The body, if it is JSON
    pub body: Value,
    /// The body as text
    pub body_text: Option<String>,
}

/// Exactly one of `rule` and `ruleName`, and one of `event` and `eventId`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({
    "ruleName": "invoices", "event": {"id": "evt-1", "type": "order.created", "data": {"total": 120.5}},
})))]
#[serde(rename_all = "camelCase")]
pub struct EvaluateInput {
    /// A whole rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-shape" = "create")))]
    pub rule: Option<RuleSpec>,
    /// Name of a stored rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_name: Option<Name>,
    /// A sample event
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-shape" = "create")))]
    pub event: Option<EventInput>,
    /// Id of a stored event
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
}

/// The result of a rule for an event
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Evaluation {
    /// The rule does not match the type of the event.
    OtherType,
    /// The filter of the rule does not match the event.
    Filtered {
        /// Set if the event lacks a field
        reason: Option<String>,
    },
    /// The request can't be rendered; a delivery would be dead-lettered immediately.
    Unrenderable {
        /// The field of the rule that can't be rendered
        field: String,
        /// The reason
        reason: String,
    },
    /// The rule renders a request.
    Request {
        /// The request
        request: Request,
        /// The ordering key, if the rule has one
        ordering_key: Option<String>,
    },
}

impl Evaluation {
    /// The word of the outcome, as on the wire.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::OtherType => "otherType",
            Self::Filtered { .. } => "filtered",
            Self::Unrenderable { .. } => "unrenderable",
            Self::Request { .. } => "request",
        }
    }

    /// The request, if there is one.
    #[must_use]
    pub fn request(&self) -> Option<&Request> {
        match self {
            Self::Request { request, .. } => Some(request),
            _ => None,
        }
    }

    /// The reason for which there is no request, if it is known.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Filtered { reason } => reason.as_deref(),
            Self::Unrenderable { reason, .. } => Some(reason),
            Self::OtherType | Self::Request { .. } => None,
        }
    }
}

/// A test of a rule with stored events
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"max": 100})))]
#[serde(rename_all = "camelCase")]
pub struct BacktestInput {
    /// Maximum number of events, newest first
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000), extend("default" = 100)))]
    pub max: Option<u32>,
    /// Rule to test in place of the stored one; its name may be omitted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-shape" = "replacement")))]
    pub rule: Option<RuleSpec>,
}

/// The result of a test with stored events
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Backtest {
    /// Number of events of its type that were evaluated
    pub events: u64,
    /// Number of events that its filter does not match
    pub filtered: u64,
    /// Number of events that would be dead-lettered immediately
    pub unrenderable: u64,
    /// Number of rendered requests
    pub requests: u64,
    /// The first ten results
    pub samples: Vec<BacktestSample>,
}

/// The result of a rule for one stored event
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BacktestSample {
    /// Id of the event
    pub event: EventId,
    /// The result for it.
    #[serde(flatten)]
    pub evaluation: Evaluation,
}

/// The version to restore
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"version": 3})))]
#[serde(rename_all = "camelCase")]
pub struct RollbackInput {
    /// The version whose content becomes a new version
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("x-required" = "the version to restore")))]
    pub version: u64,
}
