//! Services and their circuits.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{Auth, BaseUrl, Headers, Name, Policy, RequestPath, Timestamp, WaitFields, WriteOnly};

words! {
    /// The type of a service.
    #[derive(Default)]
    ServiceType {
        /// The service is called over HTTP.
        #[default]
        Http = "http",
    }

    /// The state of a circuit.
    CircuitState {
        /// Requests are sent.
        Closed = "closed",
        /// Requests are refused, because too many have failed.
        Open = "open",
        /// A few requests are sent as probes.
        HalfOpen = "halfOpen",
        /// An operator has opened it.
        ForcedOpen = "forcedOpen",
        /// An operator has closed it.
        ForcedClosed = "forcedClosed",
    }

    /// The class of a failure.
    FaultClass {
        /// The service rejected the request.
        Business = "business",
        /// The connection failed.
        Io = "io",
        /// There was no response in time.
        Timeout = "timeout",
        /// The response could not be read.
        Protocol = "protocol",
        /// The service failed.
        System = "system",
    }

    /// What becomes of pending deliveries when their service or rule is deleted.
    #[derive(Default)]
    PendingPolicy {
        /// The deletion is refused while there are any.
        #[default]
        Refuse = "refuse",
        /// They are dead-lettered.
        DeadLetter = "deadLetter",
    }
}

/// A service to register
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({
    "name": "billing", "type": "http", "address": "http://127.0.0.1:9000",
    "auth": {"type": "bearer", "secret": "what the service gave you"},
    "policy": {"preset": "critical", "retry": {"max_attempts": 5}},
}), extend("x-ignored" = ["inHand"])))]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Lower-case letters, digits and inner hyphens; it can't be changed
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "billing"})))]
    pub name: Name,
    /// Only `http` is supported
    #[serde(default)]
    pub r#type: ServiceType,
    /// Base URL; rules append a path
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"placeholder": "https://billing.example/api"})))]
    pub address: BaseUrl,
    /// Authentication of the hub to the service. Omit it to keep the current one; null removes it
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"label": "Authentication"})))]
    pub auth: Option<Auth<WriteOnly>>,
    /// Sent with every request; displayed, so no secrets here
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-merge" = "deep", "x-form" = {"widget": "pairs", "placeholder": "x-team: orders"})))]
    pub headers: Headers,
    /// Its policies
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-merge" = "deep", "x-always" = true, "x-form" = {"widget": "policy"})))]
    pub policy: Option<Policy>,
    /// True if its deliveries are paused
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("x-form" = {"hidden": "the actions pause and resume change it"})))]
    pub paused: bool,
}

impl ServiceSpec {
    /// A service with the default policy and without credentials.
    pub fn new(name: impl Into<Name>, address: impl Into<BaseUrl>) -> Self {
        Self {
            name: name.into(),
            r#type: ServiceType::Http,
            address: address.into(),
            auth: None,
            headers: Headers::new(),
            policy: None,
            paused: false,
        }
    }
}

/// A service as the hub returns it
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// What people have written.
    #[serde(flatten)]
    pub spec: ServiceSpec,
    /// Increases with every change; also in the header `ETag`
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub version: u64,
    /// The time of the last change
    pub changed_at: Timestamp,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Warnings, such as an address that the egress rules forbid
    pub warnings: Vec<String>,
    /// Waiting deliveries, as listed with `state=waiting`. Those in the store are counted up to 100 000 per service
    pub waiting: u64,
    /// Deliveries in progress: the request is being sent or its result is being stored
    pub in_flight: u64,
    /// What its deliveries wait for.
    #[serde(flatten)]
    pub wait: WaitFields,
}

/// A test of a service: one request through its policies
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"method": "GET", "path": "/health"})))]
#[serde(rename_all = "camelCase")]
pub struct TestRequest {
    /// The method of the request
    #[serde(default = "get")]
    pub method: String,
    /// Path below the address of the service
    #[serde(default = "root")]
    pub path: RequestPath,
    /// Header names and values
    #[serde(default)]
    pub headers: Headers,
    /// Sent as JSON
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
}

impl Default for TestRequest {
    fn default() -> Self {
        Self { method: get(), path: root(), headers: Headers::new(), body: None }
    }
}

pub(crate) fn get() -> String {
    "GET".to_owned()
}

pub(crate) fn root() -> RequestPath {
    RequestPath::new("/")
}

/// The result of a test
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// True if the service responded
    pub reached: bool,
    /// The duration of the request in milliseconds
    pub latency_ms: u64,
    /// Null if its policy has no circuit breaker
    pub circuit: Option<CircuitState>,
    /// Present if the service responded
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 100, max = 999)))]
    pub http_status: Option<u16>,
    /// True if a delivery would count the response as a success
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// Class of the failure, if it failed
    pub fault: Option<FaultClass>,
    /// Start of the response body; only for keys with the scope `admin`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Error, if the service did not respond; only for keys with the scope `admin`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Policy that ended the request
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// The circuit of a service
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Circuit {
    /// Null if its policy has no circuit breaker
    pub state: Option<CircuitState>,
    /// Present if there is no circuit breaker
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Absent if there is no circuit breaker
    #[serde(flatten)]
    pub details: Option<CircuitDetails>,
    /// Effective policy as text
    pub guard: Option<String>,
}

/// The reason, the counts and the history of a circuit
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CircuitDetails {
    /// Reason of the current state: the failure that opened it, or the reason given by the operator
    #[cfg_attr(feature = "schema", schemars(extend("x-null" = true)))]
    pub reason: Option<String>,
    /// Its settings as text
    pub policy: String,
    /// How often it has opened
    pub opened: u64,
    /// How many requests it has refused
    pub refused: u64,
    /// Current counts
    pub window: CircuitWindow,
    /// Newest first
    pub history: Vec<CircuitMove>,
}

/// The counts by which a circuit decides
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CircuitWindow {
    /// The number of calls
    pub calls: u64,
    /// The number of failed calls
    pub failures: u64,
    /// The number of slow calls
    pub slow: u64,
}

/// A former state of a circuit
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CircuitMove {
    /// The state
    pub state: CircuitState,
    /// The time at which it began
    pub at: Timestamp,
    /// The reason, if there was one
    pub reason: Option<String>,
    /// The time of the next probe
    pub until: Option<Timestamp>,
    /// Number of failed probes since the circuit opened
    pub failed_probes: u64,
}

/// The state of a circuit after a command
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CircuitChange {
    /// Null if its policy has no circuit breaker
    pub state: Option<CircuitState>,
    /// The reason of the command
    pub reason: String,
}

/// How a service or a rule is deleted
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeleteQuery {
    /// What to do with pending deliveries: refuse to delete, or dead-letter them
    #[serde(default)]
    pub pending: PendingPolicy,
}
