//! Actions on many dead letters.

use serde::{Deserialize, Deserializer, Serialize};

use crate::word::{inline_schema, words};
use crate::{
    DeadLetter, DeliveryId, FailureFilter, LetterQuery, LetterState, OperationId, ReplayMode, Timestamp,
};

words! {
    /// What a bulk operation does.
    BulkTask {
        /// It replays dead letters.
        Replay = "replay",
        /// It deletes dead letters, which can be restored.
        Delete = "delete",
        /// It restores deleted dead letters.
        Restore = "restore",
        /// It parks dead letters.
        Park = "park",
        /// It reopens parked dead letters.
        Unpark = "unpark",
        /// It deletes dead letters permanently.
        Purge = "purge",
    }

    /// The state of a bulk operation.
    OperationState {
        /// It is in progress.
        Running = "running",
        /// An operator has paused it.
        Paused = "paused",
        /// It has ended.
        Done = "done",
        /// An operator has ended it.
        Cancelled = "cancelled",
        /// A failed canary stage has ended it.
        Stopped = "stopped",
    }
}

/// The stages of a replay: on or off, or the sizes of the stages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Canary {
    /// The default stages, or none.
    Switch(bool),
    /// The sizes of the stages: 1 to 8 of them, each at least 1.
    Stages(Vec<u32>),
}

inline_schema! { Canary: {"oneOf": [
    {"type": "boolean"},
    {"type": "array", "items": {"type": "integer", "format": "uint32", "minimum": 1}, "minItems": 1, "maxItems": 8},
]} }

/// States of dead letters: a list, or on the way in a text with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct LetterStates(pub Vec<LetterState>);

impl<'de> Deserialize<'de> for LetterStates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            List(Vec<LetterState>),
            Text(String),
        }
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::List(states) => states,
            Written::Text(text) => return Ok(Self::from(&*text)),
        }))
    }
}

impl From<&str> for LetterStates {
    /// Reads words with commas between them.
    fn from(text: &str) -> Self {
        Self(text.split(',').map(|word| LetterState::from(word.trim())).collect())
    }
}

inline_schema! { LetterStates: {"oneOf": [
    {"type": "string", "format": "letter-states", "x-empty": "omit it for all"},
    {"type": "array", "items": {"type": "string", "enum": LetterState::WORDS}, "x-empty": "omit it for all"},
]} }

/// Filter for dead letters; empty for all
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"service": "billing", "status": 422})))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterFilter {
    /// The part that all filters share.
    #[serde(flatten)]
    pub failure: FailureFilter,
    /// Only of the event with this id
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-empty" = "omit it for all")))]
    pub event: Option<String>,
    /// States, as a list or separated by commas; the default depends on the action
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<LetterStates>,
    /// Dead-lettered at this time or later
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Dead-lettered before this time
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Words in the event, errors, responses or names
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_000), extend("format" = "search")))]
    pub q: Option<String>,
    /// Only these
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 1_000), extend("x-empty" = "omit it for all")))]
    pub ids: Option<Vec<DeliveryId>>,
}

impl From<LetterQuery> for DeadLetterFilter {
    /// The filter that selects what a list with this query shows.
    fn from(query: LetterQuery) -> Self {
        let LetterQuery { failure, event, standing, since, until, q } = query;
        let standing = standing.as_deref().map(LetterStates::from);
        Self { failure, event, standing, since, until, q, ids: None }
    }
}

/// What all actions on many dead letters can be told
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BulkOptions {
    /// Maximum number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max: Option<u64>,
    /// Only return the count and a sample
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub dry_run: Option<bool>,
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A replay of many dead letters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"filter": {"service": "billing"}, "dryRun": true})))]
#[serde(rename_all = "camelCase")]
pub struct ReplayManyInput {
    /// Which dead letters
    #[cfg_attr(feature = "schema", schemars(extend("x-required" = "a filter such as `{\"service\": \"billing\"}`, or `{}` for all")))]
    pub filter: DeadLetterFilter,
    /// How they are replayed.
    #[serde(flatten)]
    pub replay: ReplayGroupInput,
}

/// A replay of a group
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"dryRun": true})))]
#[serde(rename_all = "camelCase")]
pub struct ReplayGroupInput {
    /// `render`: render with the current rule; `same`: send the original request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "render")))]
    pub mode: Option<ReplayMode>,
    /// Replays per second
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000), extend("default" = 50)))]
    pub rate_per_second: Option<u32>,
    /// Canary stages: the next stage starts only if every replay of the previous one is delivered on the first attempt; true for [1, 10]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub canary: Option<Canary>,
    /// The options.
    #[serde(flatten)]
    pub options: BulkOptions,
}

/// An action on many dead letters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"filter": {"service": "billing"}, "dryRun": true})))]
#[serde(rename_all = "camelCase")]
pub struct BulkInput {
    /// Which dead letters
    #[cfg_attr(feature = "schema", schemars(extend("x-required" = "a filter such as `{\"service\": \"billing\"}`, or `{}` for all")))]
    pub filter: DeadLetterFilter,
    /// The options.
    #[serde(flatten)]
    pub options: BulkOptions,
}

/// A purge of many dead letters
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"filter": {"standing": "deleted"}, "force": false})))]
#[serde(rename_all = "camelCase")]
pub struct PurgeInput {
    /// Which dead letters
    #[cfg_attr(feature = "schema", schemars(extend("x-required" = "a filter such as `{\"service\": \"billing\"}`, or `{}` for all")))]
    pub filter: DeadLetterFilter,
    /// Purge; without it, only return the count and a sample
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub force: Option<bool>,
    /// Maximum number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max: Option<u64>,
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a bulk operation would affect
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Always true
    pub dry_run: bool,
    /// Number of matching dead letters
    pub count: u64,
    /// False if there may be more
    pub count_is_exact: bool,
    /// With `q`: number of dead letters that are not indexed yet
    pub unindexed: u64,
    /// The newest matches
    pub sample: Vec<DeadLetter>,
}

/// A bulk operation
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Its id
    pub id: OperationId,
    /// What it does
    pub task: BulkTask,
    /// Its state
    pub state: OperationState,
    /// Reason for which it stopped, or some were skipped
    pub why: Option<String>,
    /// The delivery whose failure stopped it, or the dead letter that could not be rendered
    pub failed_delivery: Option<DeliveryId>,
    /// What it waits for, for people
    pub waits_for: Option<String>,
    /// Options of a replay
    pub plan: Option<ReplayPlan>,
    /// Filter, as it was requested
    pub filter: DeadLetterFilter,
    /// Maximum number
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max: Option<u64>,
    /// Progress in percent
    #[cfg_attr(feature = "schema", schemars(range(max = 100)))]
    pub percent: u8,
    /// Counts
    pub progress: OperationProgress,
    /// Name of the key that started it
    pub who: String,
    /// Reason of the operator
    pub reason: Option<String>,
    /// The time of the start
    pub began_at: Timestamp,
    /// The time of the last progress
    pub changed_at: Timestamp,
    /// The time of the end
    pub ended_at: Option<Timestamp>,
}

/// The options of a replay of many
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayPlan {
    /// How each dead letter is replayed
    pub mode: ReplayMode,
    /// Replays per second
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub rate_per_second: u32,
    /// Sizes of the canary stages
    #[cfg_attr(feature = "schema", schemars(inner(range(min = 1))))]
    pub canary: Vec<u32>,
}

/// The counts of a bulk operation
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationProgress {
    /// Number of matches at the start
    pub total: u64,
    /// Number of started ones
    pub begun: u64,
    /// Skipped; `why` has the reason of the first
    pub skipped: u64,
    /// Replays whose first attempt has ended
    pub tried: u64,
    /// Replays whose first attempt has failed
    pub faltered: u64,
    /// Number of delivered replays
    pub delivered: u64,
    /// Number of replays that were dead-lettered
    pub failed: u64,
    /// Number of replays in progress
    pub under_way: u64,
}

/// A page of bulk operations
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OperationPage {
    /// The operations, newest first
    pub operations: Vec<Operation>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// The result of an action on many: what it would affect, or the operation that it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum BulkResult {
    /// A dry run: nothing was changed.
    Preview(Preview),
    /// The operation runs in the hub.
    Started(Box<Operation>),
}
