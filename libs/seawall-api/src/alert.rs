//! Incidents and their rules.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{DurationText, Name, PageQuery, Timestamp};

words! {
    /// The kind of condition that an alert rule watches.
    ConditionKind {
        /// A circuit is open.
        CircuitOpen = "circuitOpen",
        /// Deliveries were dead-lettered.
        DeadLetters = "deadLetters",
        /// Deliveries are late.
        OldestDue = "oldestDue",
        /// The hub logged warnings.
        Warnings = "warnings",
        /// The hub logged errors.
        Errors = "errors",
        /// The disk is nearly full, or the store fails.
        DataLossRisk = "dataLossRisk",
    }

    /// The severity of an incident.
    Severity {
        /// It can wait.
        Warning = "warning",
        /// It needs attention now.
        Critical = "critical",
    }

    /// The state of an incident.
    AlertState {
        /// The condition holds.
        Open = "open",
        /// The condition is over.
        Resolved = "resolved",
    }

    /// What a notification is about.
    NotificationKind {
        /// The incident was opened.
        Opened = "opened",
        /// The incident was resolved.
        Resolved = "resolved",
    }

    /// The state of a notification.
    NotificationState {
        /// It will be sent.
        Waiting = "waiting",
        /// It was sent.
        Sent = "sent",
        /// It could not be sent.
        Dropped = "dropped",
    }
}

/// An incident
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Alert {
    /// Its id
    pub id: String,
    /// The alert rule
    pub rule: Name,
    /// The kind of its condition
    pub kind: ConditionKind,
    /// Its severity
    pub severity: Severity,
    /// Null if it concerns the hub itself
    pub service: Option<Name>,
    /// Its state
    pub state: AlertState,
    /// For people; the wording may change
    pub summary: String,
    /// The observed value
    pub value: f64,
    /// The time at which it was opened
    pub opened_at: Timestamp,
    /// The time of the latest observation
    pub updated_at: Timestamp,
    /// The time at which it was resolved
    pub resolved_at: Option<Timestamp>,
    /// The reason of the resolution
    pub resolved_because: Option<String>,
    /// The acknowledgement of an operator
    pub acknowledged: Option<Acknowledgement>,
    /// Until when notifications are muted
    pub muted: Option<Mute>,
    /// Link to the related page of the dashboard
    pub link: String,
    /// Notifications that were sent or are pending
    pub notifications: Vec<Notification>,
}

/// The acknowledgement of an incident
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Acknowledgement {
    /// Name of the key
    pub by: String,
    /// The time
    pub at: Timestamp,
    /// The reason of the operator
    pub reason: Option<String>,
}

/// A mute
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Mute {
    /// Its end
    pub until: Timestamp,
    /// The reason of the operator
    pub reason: String,
}

/// A notification about an incident
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Its channel
    pub channel: Name,
    /// What it is about
    pub about: NotificationKind,
    /// Its state
    pub state: NotificationState,
    /// Number of attempts
    pub tries: u64,
    /// The time at which it was sent
    pub sent_at: Option<Timestamp>,
    /// The time of the next attempt
    pub next_try_at: Option<Timestamp>,
    /// The last error
    pub error: Option<String>,
}

/// A page of incidents
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertPage {
    /// The incidents, newest first
    pub alerts: Vec<Alert>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// Which incidents are listed
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertQuery {
    /// Only those in this state
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AlertState>,
    /// Only those of this severity
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Only those of this alert rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Name>,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}

/// A mute: for some time, or until a time
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MuteSettings", example = serde_json::json!({"for": "2h", "reason": "their migration"})))]
#[serde(rename_all = "camelCase")]
pub struct MuteInput {
    /// Its duration
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#for: Option<DurationText>,
    /// Instead of `for`
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true)))]
    pub until: Option<Timestamp>,
    /// The reason, visible to other operators
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub reason: String,
}

/// An alert rule. Fields that are omitted get their defaults
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"kind": "deadLetters", "moreThan": 50}), extend("x-ignored" = ["version"])))]
#[serde(rename_all = "camelCase")]
pub struct AlertRuleSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "billing-delay"})))]
    pub name: Name,
    /// Optional for a built-in rule
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {
        "hint": "", "required": true, "fixed": true,
        "labels": {
            "circuitOpen": "Open circuit", "deadLetters": "Dead letters", "oldestDue": "Delivery delay", "warnings": "Warnings in the log",
            "errors": "Errors in the log", "dataLossRisk": "Low disk space or store failure",
        },
    })))]
    pub kind: Option<ConditionKind>,
    /// Incidents of a disabled rule are resolved
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true, "x-always" = true, "x-form" = {"label": "State", "hint": "", "labels": {"true": "enabled", "false": "disabled: its alerts are resolved"}})))]
    pub enabled: Option<bool>,
    /// The severity of its incidents
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"hint": "", "labels": {"": "default for the kind"}})))]
    pub severity: Option<Severity>,
    /// Only these services; null for all
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Only these services", "hint": "empty for all", "placeholder": "billing"})))]
    pub services: Option<Vec<Name>>,
    /// Channels to notify beside the log; null for all
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"from": "channels", "hint": "Notify beside the log"})))]
    pub channels: Option<Vec<Name>>,
    /// Open after the condition has held for this long
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"label": "Open after", "hint": "time for which the condition must hold; empty for the default", "placeholder": "1m"})))]
    pub r#for: Option<DurationText>,
    /// Resolve after the condition has been over for this long
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-always" = true, "x-form" = {"hint": "time for which it must no longer hold; empty for the default", "placeholder": "1m"})))]
    pub resolve_after: Option<DurationText>,
    /// Until when notifications are muted
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hidden": "the actions mute and unmute change it"})))]
    pub muted: Option<MuteInput>,
    /// For the kinds `deadLetters`, `warnings` and `errors`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 4_294_967_295_u64), extend("x-form" = {"when": {"kind": ["deadLetters", "warnings", "errors"]}, "hint": "empty for the default"})))]
    pub more_than: Option<u64>,
    /// For the kinds `deadLetters`, `warnings` and `errors`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"when": {"kind": ["deadLetters", "warnings", "errors"]}, "label": "Within", "hint": "empty for the default", "placeholder": "5m"})))]
    pub window: Option<DurationText>,
    /// For the kind `oldestDue`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"when": {"kind": ["oldestDue"]}, "label": "Overdue for more than", "hint": "empty for the default", "placeholder": "10m"})))]
    pub older_than: Option<DurationText>,
    /// For the kind `dataLossRisk`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 1_152_921_504_606_846_976_u64), extend("x-form" = {"when": {"kind": ["dataLossRisk"]}, "label": "Free disk space below", "hint": "bytes; empty for the default", "placeholder": "268435456"})))]
    pub free_bytes_below: Option<u64>,
}

/// An alert rule as the hub returns it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertRule {
    /// What people have written, with the defaults.
    #[serde(flatten)]
    pub spec: AlertRuleSpec,
    /// 0 for an unmodified built-in rule; also in the header `ETag`
    pub version: u64,
    /// True for a built-in rule
    pub built_in: bool,
    /// The time of the last change
    pub changed_at: Option<Timestamp>,
}

/// A deleted alert rule
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AlertRuleDeleted {
    /// Its name
    pub name: Name,
    /// True if it no longer exists
    pub deleted: bool,
    /// True if a built-in rule was reset to its defaults
    pub reset: bool,
}
