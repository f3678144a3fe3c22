//! The bodies of actions on one dead letter.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Headers, ReplayMode, RequestPath};

/// A replay of one dead letter
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"mode": "render"})))]
#[serde(rename_all = "camelCase")]
pub struct ReplayInput {
    /// `render`: render with the current rule; `same`: send the original request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "render")))]
    pub mode: Option<ReplayMode>,
    /// The options.
    #[serde(flatten)]
    pub options: ReplayOptions,
}

/// What a replay and an edit of one dead letter can both be told
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayOptions {
    /// Allow a second replay
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub again: Option<bool>,
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Exactly one of `data` and `request`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"request": {"path": "/invoices/8"}, "dryRun": true})))]
#[serde(rename_all = "camelCase")]
pub struct EditInput {
    /// New event data; the request is rendered with the current rule
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schemars(extend("x-null" = true)))]
    pub data: Option<Value>,
    /// Changes of the request; omitted parts stay
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestEdit>,
    /// Only return the differences
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub dry_run: Option<bool>,
    /// The options.
    #[serde(flatten)]
    pub options: ReplayOptions,
}

/// Changes of a request
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestEdit {
    /// The method of the request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path with its query
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<RequestPath>,
    /// Replaces all headers
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// JSON; a string is sent as is if `content-type` is not JSON; null for no body
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "present")]
    #[cfg_attr(feature = "schema", schemars(extend("x-null" = true)))]
    pub body: Option<Value>,
}

/// A note
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"note": "#4711"})))]
#[cfg_attr(feature = "schema", schemars(extend("required" = ["note"])))]
#[serde(rename_all = "camelCase")]
pub struct NoteInput {
    /// Null removes it
    #[cfg_attr(feature = "schema", schemars(length(max = 4_000), extend("x-null" = true, "x-required" = "a text, or null to remove the note")))]
    pub note: Option<String>,
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An optional reason, recorded in the audit log
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"reason": "the service is fixed"})))]
#[serde(rename_all = "camelCase")]
pub struct ReasonInput {
    /// Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Keeps null apart from an omitted field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
