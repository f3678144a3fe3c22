//! Keys of the API.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{DurationText, Name, Timestamp};

words! {
    /// What a key allows.
    Scope {
        /// Sending events.
        Ingest = "ingest",
        /// Calling services.
        Call = "call",
        /// Reading.
        Read = "read",
        /// Operating: replays, pauses, circuits. Includes `read`.
        Operate = "operate",
        /// Everything.
        Admin = "admin",
    }
}

/// A key to create
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"name": "shop", "scopes": ["ingest"], "sources": ["shop"], "expiresIn": "90d"})))]
#[serde(rename_all = "camelCase")]
pub struct KeySpec {
    /// Lower-case letters, digits and inner hyphens
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hint": "recorded in the audit log", "placeholder": "ada"})))]
    pub name: Name,
    /// `admin` includes all scopes, `operate` includes `read`
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend(
        "x-empty" = "known scopes: ingest, call, read, operate, admin",
        "x-form" = {"labels": {
            "ingest": "send events", "call": "call services through the gateway", "read": "view everything but keys and the audit log",
            "operate": "pause, resume, replay, acknowledge", "admin": "change everything and create keys; can't be restricted",
        }},
    )))]
    pub scopes: Vec<Scope>,
    /// Restricts the key to these services; default all. Not with `admin`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-null" = false, "x-empty" = "omit it for all", "x-form" = {"label": "Only these services", "hint": "empty for all", "placeholder": "billing"})))]
    pub services: Option<Vec<Name>>,
    /// Restricts the key to events from these sources; default all. Not with `admin`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1), extend("x-null" = false, "x-empty" = "omit it for all", "x-form" = {"label": "Only events from these sources", "hint": "empty for all", "placeholder": "shop"})))]
    pub sources: Option<Vec<String>>,
    /// Time after which the key expires; default never
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hint": "empty for never", "placeholder": "90d"})))]
    pub expires_in: Option<DurationText>,
}

impl KeySpec {
    /// A key without restrictions that never expires.
    pub fn new(name: impl Into<Name>, scopes: impl Into<Vec<Scope>>) -> Self {
        Self { name: name.into(), scopes: scopes.into(), services: None, sources: None, expires_in: None }
    }
}

/// A key as the hub returns it
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The name of the key
    pub name: Name,
    /// `admin` includes all scopes, `operate` includes `read`
    pub scopes: Vec<Scope>,
    /// The services that it is restricted to; null for all
    pub services: Option<Vec<Name>>,
    /// The sources that it is restricted to; null for all
    pub sources: Option<Vec<String>>,
    /// The time of its creation
    pub made_at: Timestamp,
    /// The time at which it expires; null for never
    pub expires_at: Option<Timestamp>,
    /// The time at which it was revoked
    pub revoked_at: Option<Timestamp>,
    /// End of the validity of the previous key
    pub former_until: Option<Timestamp>,
}

/// A key at its creation or rotation
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreatedKey {
    /// What later reads return too.
    #[serde(flatten)]
    pub about: Key,
    /// The key; it is shown only once
    pub key: String,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreatedKey").field("about", &self.about).finish_non_exhaustive()
    }
}

/// The rotation of a key
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"grace": "1h"})))]
#[serde(rename_all = "camelCase")]
pub struct RotateInput {
    /// Time for which the previous key stays valid
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "1h")))]
    pub grace: Option<DurationText>,
}
