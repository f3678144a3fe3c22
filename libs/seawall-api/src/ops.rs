//! The audit log, health and metrics.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{CircuitState, TagFilter, Timestamp};

words! {
    /// The state of the hub.
    HealthState {
        /// It works.
        Up = "up",
    }
}

/// An entry of the audit log
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// The time
    pub at: Timestamp,
    /// Name of the key
    pub who: String,
    /// What was done
    pub action: String,
    /// What it was done to
    pub target: String,
    /// Reason of the change
    pub reason: Option<String>,
    /// Id of the request in the hub's log
    pub trace_id: Option<String>,
}

/// A page of the audit log
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditPage {
    /// The entries, newest first
    pub entries: Vec<AuditEntry>,
    /// `page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last
    pub next_page_token: String,
}

/// The result of a rotation of the encryption key
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeyRotation {
    /// Number of the current encryption key
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub key: u32,
    /// Number of secrets that were encrypted again
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub resealed: u64,
    /// Owners of secrets that could not be decrypted; the previous keys stay while there are any
    pub unreadable: Vec<String>,
}

/// The state of the hub
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HealthStatus {
    /// Always `up`
    pub state: HealthState,
}

/// The state of the hub and of the circuits
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Always `up`
    pub state: HealthState,
    /// Circuits that are not closed
    pub circuits_not_closed: Vec<ServiceCircuit>,
}

/// The circuit of a service
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServiceCircuit {
    /// Name of the service
    pub service: String,
    /// State of its circuit
    pub circuit: CircuitState,
}

/// The names of all metrics
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"names": ["seawall.deliveries"]})))]
#[serde(rename_all = "camelCase")]
pub struct MetricNames {
    /// The names
    pub names: Vec<String>,
}

/// A metric, in the format of Spring's actuator
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Its name
    pub name: String,
    /// Its meaning
    pub description: Option<String>,
    /// Its unit
    pub base_unit: Option<String>,
    /// Its values
    pub measurements: Vec<Measurement>,
    /// Its labels
    pub available_tags: Vec<MetricTag>,
}

/// A value of a metric
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// What was measured
    pub statistic: String,
    /// The value
    pub value: Option<serde_json::Number>,
}

/// A label of a metric
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MetricTag {
    /// The name of the label
    pub tag: String,
    /// Its values
    pub values: Vec<String>,
}

/// Which series of a metric are added up
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MetricQuery {
    /// Only series with this label, as `name:value`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Vec<TagFilter>>,
}
