//! Dead letters.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::words;
use crate::{
    Attempt, DeadLetterReason, Delivery, DeliveryId, DeliveryState, Fingerprint, Name, OperationId,
    PageQuery, Request, Timestamp,
};

words! {
    /// The state of a dead letter.
    LetterState {
        /// Nobody has dealt with it.
        Open = "open",
        /// Its replay is in progress.
        Replaying = "replaying",
        /// Its replay was delivered.
        Delivered = "delivered",
        /// Its replay was dead-lettered too.
        FailedAgain = "failedAgain",
        /// An operator has parked it.
        Parked = "parked",
        /// It is deleted and can be restored.
        Deleted = "deleted",
    }

    /// How a dead letter is replayed.
    #[derive(Default)]
    ReplayMode {
        /// The request is rendered with the current rule.
        #[default]
        Render = "render",
        /// The original request is sent.
        Same = "same",
    }
}

/// A dead letter: a delivery that failed permanently
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// The time at which it was dead-lettered
    pub dead_at: Timestamp,
    /// HTTP status of the last response
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub status: Option<u16>,
    /// The last error
    pub error: Option<String>,
    /// Its latest replay
    pub replayed: Option<ReplayState>,
    /// State of the dead letter; `state` is that of the delivery
    pub standing: LetterState,
    /// Group of dead letters with the same failure
    pub group: Fingerprint,
    /// Source of its event
    pub source: String,
    /// The note of an operator
    pub note: Option<String>,
    /// Bulk operation that replayed it last
    pub operation: Option<OperationId>,
    /// True if its latest replay was edited
    pub edited: bool,
    /// The time at which it was deleted
    pub deleted_at: Option<Timestamp>,
    /// Time at which it is purged, if it was deleted; null for never
    pub purge_at: Option<Timestamp>,
}

/// A replay of a dead letter
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayState {
    /// Id of the new delivery
    pub r#as: DeliveryId,
    /// State of the new delivery
    pub state: DeliveryState,
    /// The time of the replay
    pub at: Timestamp,
}

/// A dead letter with all that is known of it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterWithEvidence {
    /// The dead letter.
    #[serde(flatten)]
    pub letter: DeadLetter,
    /// Original event
    pub raw_event: Value,
    /// Rendered request
    pub request: Option<Request>,
    /// Oldest first
    pub attempts: Vec<Attempt>,
    /// Current version of the rule; null if it was deleted
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub rule_version_today: Option<u64>,
    /// W3C trace context of the event
    pub trace: Option<String>,
    /// Other deliveries of the same event, newest first
    pub related: Vec<Delivery>,
    /// The request as a curl command, without credentials
    pub curl: Option<String>,
    /// True if the hub adds credentials; null if the service was deleted
    pub service_has_auth: Option<bool>,
    /// Changes before replay, if there are any
    pub diff: Option<Vec<Difference>>,
}

/// A difference between two requests
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// `method`, `path`, `headers.x-order`, `body.data.id`
    pub place: String,
    /// The previous value
    pub was: Option<String>,
    /// The new value
    pub now: Option<String>,
}

/// A page of dead letters
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPage {
    /// The dead letters, newest first
    pub dead_letters: Vec<DeadLetter>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
    /// With `q`: number of dead letters that are not indexed yet
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchState>,
}

/// The state of the search index
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchState {
    /// Number of dead letters that are not indexed yet
    pub unindexed: u64,
}

/// A deleted dead letter
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterDeleted {
    /// Its id
    pub id: DeliveryId,
    /// Always true
    pub deleted: bool,
    /// State of the dead letter
    pub standing: LetterState,
    /// It can be restored until this time; null for always
    pub purge_at: Option<Timestamp>,
}

/// A purged dead letter
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPurged {
    /// Its id
    pub id: DeliveryId,
    /// Always true
    pub purged: bool,
}

/// A started replay
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    /// Id of the new delivery
    pub delivery: DeliveryId,
    /// Id of the dead letter
    pub replay_of: DeliveryId,
}

/// The result of an edit
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EditResult {
    /// Id of the new delivery; null for a dry run
    pub delivery: Option<DeliveryId>,
    /// Id of the dead letter
    pub replay_of: DeliveryId,
    /// The request with the changes
    pub request: Request,
    /// The changes
    pub diff: Vec<Difference>,
}

/// The part that all filters of dead letters share
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailureFilter {
    /// Only for this service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Name>,
    /// Only of this rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Name>,
    /// Only those dead-lettered for this reason
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<DeadLetterReason>,
    /// Only those whose last response had this status
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub status: Option<u16>,
    /// Only of this group
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Fingerprint>,
    /// Only those that were replayed (true) or not (false)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<bool>,
}

/// The filter of a list and of an export
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LetterQuery {
    /// The part that all filters share.
    #[serde(flatten)]
    pub failure: FailureFilter,
    /// Only of the event with this id
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub event: Option<String>,
    /// Only those in these states, separated by commas: open, replaying, delivered, failedAgain, parked, deleted
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            regex(
                pattern = r"^(open|replaying|delivered|failedAgain|parked|deleted)(,(open|replaying|delivered|failedAgain|parked|deleted))*$"
            ),
            extend("format" = "letter-states")
        )
    )]
    pub standing: Option<String>,
    /// Only those dead-lettered at this time or later
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only those dead-lettered before this time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only those with these words in the event, errors, responses or names; quotes match a phrase
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 1_000), extend("format" = "search")))]
    pub q: Option<String>,
}

/// Which dead letters are listed
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadLetterQuery {
    /// The filter.
    #[serde(flatten)]
    pub filter: LetterQuery,
    /// The page.
    #[serde(flatten)]
    pub page: PageQuery,
}

/// Which dead letters are exported
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExportQuery {
    /// The filter.
    #[serde(flatten)]
    pub filter: LetterQuery,
    /// Maximum number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max: Option<u64>,
}
