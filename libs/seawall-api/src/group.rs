//! Groups of dead letters with the same failure.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{DeadLetter, DeadLetterReason, DeliveryId, Fingerprint, Name, PageQuery, Timestamp};

words! {
    /// The state of a group.
    GroupState {
        /// Nobody has dealt with it.
        Open = "open",
        /// An operator works on it.
        Acknowledged = "acknowledged",
        /// The cause is fixed.
        Resolved = "resolved",
    }
}

/// Dead letters with the same failure
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterGroup {
    /// The id of the group
    pub fingerprint: Fingerprint,
    /// The service that failed
    pub service: Name,
    /// The rule of the deliveries
    pub rule: Name,
    /// Reason for dead-lettering
    pub reason: DeadLetterReason,
    /// HTTP status of the last response
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub status: Option<u16>,
    /// Error message without its variable parts
    pub message: String,
    /// State of the group
    pub state: GroupState,
    /// The note of an operator
    pub note: Option<String>,
    /// The time of the first failure
    pub first_at: Timestamp,
    /// The time of the latest failure
    pub last_at: Timestamp,
    /// Number of times it was reopened by a new failure
    pub reopened: u64,
    /// Counts by `standing`
    pub counts: LetterCounts,
    /// The newest open dead letter, or the newest
    pub sample: Option<DeliveryId>,
}

/// Numbers of dead letters by their state
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LetterCounts {
    /// Number of open ones
    pub open: u64,
    /// Number of those whose replay is in progress
    pub replaying: u64,
    /// Number of those whose replay was delivered
    pub delivered: u64,
    /// Number of those whose replay was dead-lettered too
    pub failed_again: u64,
    /// Number of parked ones
    pub parked: u64,
    /// Number of deleted ones
    pub deleted: u64,
}

/// A group with one of its dead letters
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterGroupWithSample {
    /// The group.
    #[serde(flatten)]
    pub group: DeadLetterGroup,
    /// The dead letter of `sample`
    pub sample_letter: Option<DeadLetter>,
}

/// A page of groups
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterGroupPage {
    /// The groups, by their latest failure, newest first
    pub dead_letter_groups: Vec<DeadLetterGroup>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// Which groups are listed
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GroupQuery {
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Only of this rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Name>,
    /// Only those in these states, separated by commas: open, acknowledged, resolved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            regex(pattern = r"^(open|acknowledged|resolved)(,(open|acknowledged|resolved))*$"),
            extend("format" = "group-states")
        )
    )]
    pub state: Option<String>,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}

/// A note and a reason for the new state of a group
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"note": "#4711"})))]
#[serde(rename_all = "camelCase")]
pub struct GroupStateInput {
    /// A note; omitted, the current one stays
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 4_000)))]
    pub note: Option<String>,
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
