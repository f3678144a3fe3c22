//! Calls through the policies of a service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
#[cfg(feature = "schema")]
use serde_json::json;

use crate::word::words;
use crate::{CircuitState, DeliveryId, Headers, RequestPath};

words! {
    /// How a body is written in JSON.
    BodyEncoding {
        /// The body is JSON.
        Json = "json",
        /// The body is text, in a string.
        Text = "text",
        /// The body is in base 64, in a string.
        Base64 = "base64",
    }

    /// When a call is made.
    #[derive(Default)]
    CallMode {
        /// The service is called now.
        #[default]
        Sync = "sync",
        /// The call is queued.
        Async = "async",
        /// The service is called now, and the call is queued if that fails.
        SyncOrQueue = "sync_or_queue",
    }
}

/// A value in the query of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum QueryValue {
    /// A text.
    Text(String),
    /// A number.
    Number(serde_json::Number),
    /// True or false.
    Switch(bool),
    /// Several values of the same name.
    List(Vec<QueryValue>),
}

/// The query of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CallQuery {
    /// The encoded query, without the question mark.
    Encoded(String),
    /// Names and values, which the hub encodes.
    Pairs(BTreeMap<String, QueryValue>),
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for CallQuery {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallQuery".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (text, number, switch) =
            (json!({"type": "string"}), json!({"type": "number"}), json!({"type": "boolean"}));
        let list = json!({"type": "array", "items": {"oneOf": [text, number, switch]}});
        let pairs =
            json!({"type": "object", "additionalProperties": {"oneOf": [text, number, switch, list]}});
        schemars::json_schema!({"oneOf": [text, pairs]})
    }
}

/// The value of a header: a text, or a list if the header is repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::common::one_of))]
#[serde(untagged)]
pub enum HeaderValue {
    /// The only value.
    One(String),
    /// All values, in their order.
    Many(Vec<String>),
}

/// A call to a service, through its policies
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"method": "GET", "path": "/invoices/7"})))]
#[serde(rename_all = "camelCase")]
pub struct CallInput {
    /// The method of the request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "GET")))]
    pub method: Option<String>,
    /// Path below the address of the service
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "/")))]
    pub path: Option<RequestPath>,
    /// Object of names with values or lists of values, or an encoded string
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("x-shape" = "call-query")))]
    pub query: Option<CallQuery>,
    /// Header names and values
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// JSON; a string is sent as is if `content-type` is not JSON
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Encoding of `body`; the default depends on its type
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_encoding: Option<BodyEncoding>,
    /// Call now, queue the call, or queue it if the call fails
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "sync")))]
    pub mode: Option<CallMode>,
    /// Time limit of the call in milliseconds
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 600_000)))]
    pub timeout_ms: Option<u64>,
}

/// Response of the service, whatever its status
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallResponse {
    /// Status of the response
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub http_status: u16,
    /// A repeated header is a list
    pub headers: BTreeMap<String, HeaderValue>,
    /// The body, encoded as `bodyEncoding` says
    pub body: Value,
    /// Encoding of `body`
    pub body_encoding: BodyEncoding,
    /// Number of attempts
    pub attempts: u64,
    /// The duration of the call in milliseconds
    pub latency_ms: u64,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Always false
    pub fallback: bool,
}

/// A queued call, which is delivered later
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedCall {
    /// Id of the event that stores the call
    pub id: String,
    /// Ids of its deliveries
    pub deliveries: Vec<DeliveryId>,
    /// The first of its deliveries
    pub delivery: Option<DeliveryId>,
    /// True if a call with the same idempotency key was queued before
    pub deduplicated: bool,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Attempts before it was queued
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// The duration of these attempts in milliseconds
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// Reason for which it was queued
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The result of a call: the response of the service, or the queued call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum CallResult {
    /// The service responded.
    Response(CallResponse),
    /// The call was queued.
    Queued(QueuedCall),
}

/// What is known about a call that failed: the `data` of its error
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallFailure {
    /// Number of attempts
    #[serde(default)]
    pub attempts: u64,
    /// The duration of the call in milliseconds
    #[serde(default)]
    pub latency_ms: u64,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Policy that ended the call
    pub decided_by: Option<String>,
}
