//! Types that several resources share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Name;
use crate::Timestamp;
use crate::word::words;

/// Header names and values.
pub type Headers = BTreeMap<String, String>;

/// One instance of the configuration file; see docs/configuration-reference.md. Default: attempt timeout 3 s, three attempts, circuit breaker (5 consecutive failures, 30 s), bulkhead of 20
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"attempt_timeout": "3s", "breaker": {"consecutive_failures": 5, "cooldown": "30s"}})))]
#[serde(transparent)]
pub struct Policy(pub Map<String, Value>);

words! {
    /// What a delivery waits for.
    WaitReason {
        /// The paused service.
        Service = "service",
        /// The disabled rule.
        Rule = "rule",
        /// An earlier delivery with the same ordering key.
        Order = "order",
        /// The circuit of the service.
        Circuit = "circuit",
        /// The end of the pause that the service asked for.
        Peer = "peer",
        /// The rate limit or the bulkhead of the service.
        Limit = "limit",
        /// The time of the next attempt.
        Time = "time",
        /// A free slot.
        Turn = "turn",
    }
}

/// What a delivery waits for, or the deliveries of a service
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitFields {
    /// What it waits for; null if nothing waits
    pub waits_for: Option<WaitReason>,
    /// End of the wait or time of the next check, if known
    pub waits_until: Option<Timestamp>,
    /// For people: the wording may change
    pub waits_because: Option<String>,
}

/// The confirmation of a deletion
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"name": "billing", "deleted": true})))]
#[serde(rename_all = "camelCase")]
pub struct Deleted {
    /// The name of what was deleted
    pub name: Name,
    /// Always true
    pub deleted: bool,
}

/// An optional reason
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"reason": "the service is back"})))]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// Reason, visible to other operators and recorded in the audit log
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A required reason
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"reason": "maintenance until noon"})))]
#[serde(rename_all = "camelCase")]
pub struct RequiredReason {
    /// Reason, visible to other operators and recorded in the audit log
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"\S")))]
    pub reason: String,
}

/// Which part of a list is returned
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageQuery {
    /// Maximum number of items per page
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 500), extend("default" = 50)))]
    pub page_size: Option<u32>,
    /// `nextPageToken` of the previous page; empty for the first page
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-z]{0,12}$"), extend("format" = "page-token")))]
    pub page_token: Option<String>,
}

/// Makes the schema of an untagged enum say that its cases exclude each other.
#[cfg(feature = "schema")]
pub(crate) fn one_of(schema: &mut schemars::Schema) {
    if let Some(cases) = schema.remove("anyOf") {
        schema.insert("oneOf".into(), cases);
    }
}
