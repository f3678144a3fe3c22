//! Operations, alerts, the audit log and health.

use seawall_api::{
    Alert, AlertChannel, AlertChannelSpec, AlertChannelTested, AlertPage, AlertQuery, AlertRule,
    AlertRuleDeleted, AlertRuleSpec, AuditPage, Deleted, Health, HealthStatus, History, HistoryQuery,
    KeyRotation, MuteInput, Operation, OperationPage, Overview, PageQuery, Reason, ReasonInput,
    ServiceStatusPage, ServiceStatusQuery,
};
use seawall_http::Method;
use serde_json::Value;

use crate::call::ApiCall;
use crate::client::Client;
use crate::json::JsonBody;
use crate::path::at;

const OPERATIONS: &str = "/api/v1/ops/operations";
const ALERTS: &str = "/api/v1/ops/alerts";
const ALERT_RULES: &str = "/api/v1/ops/alertRules";
const ALERT_CHANNELS: &str = "/api/v1/ops/alertChannels";

impl Client {
    /// The bulk operations on dead letters.
    #[must_use]
    pub fn operations(&self) -> OperationsApi<'_> {
        OperationsApi(self)
    }

    /// The incidents.
    #[must_use]
    pub fn alerts(&self) -> AlertsApi<'_> {
        AlertsApi(self)
    }

    /// The rules that open incidents.
    #[must_use]
    pub fn alert_rules(&self) -> AlertRulesApi<'_> {
        AlertRulesApi(self)
    }

    /// The channels that are notified.
    #[must_use]
    pub fn alert_channels(&self) -> AlertChannelsApi<'_> {
        AlertChannelsApi(self)
    }

    /// The state of the hub: overview, history, audit log, health.
    #[must_use]
    pub fn ops(&self) -> OpsApi<'_> {
        OpsApi(self)
    }
}

/// Requests about bulk operations.
#[derive(Clone, Copy, Debug)]
pub struct OperationsApi<'c>(pub(crate) &'c Client);

impl OperationsApi<'_> {
    /// Lists operations, newest first.
    pub fn list(self, page: &PageQuery) -> ApiCall<OperationPage> {
        ApiCall::get(self.0, OPERATIONS).query(page)
    }

    /// Reads an operation with its progress.
    pub fn get(self, id: &str) -> ApiCall<Operation> {
        ApiCall::get(self.0, at(OPERATIONS, id, ""))
    }

    /// Pauses it. Replays already started will finish.
    pub fn pause(self, id: &str, reason: &ReasonInput) -> ApiCall<Operation> {
        ApiCall::post(self.0, at(OPERATIONS, id, ":pause")).json(reason)
    }

    /// Resumes it. One that its canary stopped continues without a canary.
    pub fn resume(self, id: &str, reason: &ReasonInput) -> ApiCall<Operation> {
        ApiCall::post(self.0, at(OPERATIONS, id, ":resume")).json(reason)
    }

    /// Cancels it. Replays already started will finish.
    pub fn cancel(self, id: &str, reason: &ReasonInput) -> ApiCall<Operation> {
        ApiCall::post(self.0, at(OPERATIONS, id, ":cancel")).json(reason)
    }
}

/// Requests about incidents.
#[derive(Clone, Copy, Debug)]
pub struct AlertsApi<'c>(pub(crate) &'c Client);

impl AlertsApi<'_> {
    /// Lists incidents, newest first.
    pub fn list(self, query: &AlertQuery) -> ApiCall<AlertPage> {
        ApiCall::get(self.0, ALERTS).query(query)
    }

    /// Reads an incident with its notifications.
    pub fn get(self, id: &str) -> ApiCall<Alert> {
        ApiCall::get(self.0, at(ALERTS, id, ""))
    }

    /// Acknowledges it.
    pub fn acknowledge(self, id: &str, reason: &Reason) -> ApiCall<Alert> {
        ApiCall::post(self.0, at(ALERTS, id, ":acknowledge")).json(reason)
    }

    /// Mutes it for a while.
    pub fn mute(self, id: &str, mute: &MuteInput) -> ApiCall<Alert> {
        ApiCall::post(self.0, at(ALERTS, id, ":mute")).json(mute)
    }

    /// Unmutes it.
    pub fn unmute(self, id: &str) -> ApiCall<Alert> {
        ApiCall::post(self.0, at(ALERTS, id, ":unmute"))
    }
}

/// Requests about alert rules.
#[derive(Clone, Copy, Debug)]
pub struct AlertRulesApi<'c>(pub(crate) &'c Client);

impl AlertRulesApi<'_> {
    /// Lists alert rules.
    pub fn list(self) -> ApiCall<Vec<AlertRule>> {
        ApiCall::get(self.0, ALERT_RULES)
    }

    /// Reads one.
    pub fn get(self, name: &str) -> ApiCall<AlertRule> {
        ApiCall::get(self.0, at(ALERT_RULES, name, ""))
    }

    /// Creates or replaces the one of this name. Fields that are omitted get their defaults.
    pub fn put(self, name: &str, spec: impl Into<JsonBody<AlertRuleSpec>>) -> ApiCall<AlertRule> {
        ApiCall::new(self.0, Method::PUT, at(ALERT_RULES, name, "")).json(spec)
    }

    /// Changes the fields that are named; null removes one.
    pub fn patch(self, name: &str, change: impl Into<JsonBody<Value>>) -> ApiCall<AlertRule> {
        ApiCall::new(self.0, Method::PATCH, at(ALERT_RULES, name, "")).json(change).idempotent()
    }

    /// Deletes one; a built-in rule is reset to its defaults.
    pub fn delete(self, name: &str) -> ApiCall<AlertRuleDeleted> {
        ApiCall::delete(self.0, at(ALERT_RULES, name, ""))
    }

    /// Mutes one for a while.
    pub fn mute(self, name: &str, mute: &MuteInput) -> ApiCall<AlertRule> {
        ApiCall::post(self.0, at(ALERT_RULES, name, ":mute")).json(mute)
    }

    /// Unmutes one.
    pub fn unmute(self, name: &str) -> ApiCall<AlertRule> {
        ApiCall::post(self.0, at(ALERT_RULES, name, ":unmute"))
    }
}

/// Requests about notification channels.
#[derive(Clone, Copy, Debug)]
pub struct AlertChannelsApi<'c>(pub(crate) &'c Client);

impl AlertChannelsApi<'_> {
    /// Lists channels.
    pub fn list(self) -> ApiCall<Vec<AlertChannel>> {
        ApiCall::get(self.0, ALERT_CHANNELS)
    }

    /// Reads one, without its secrets.
    pub fn get(self, name: &str) -> ApiCall<AlertChannel> {
        ApiCall::get(self.0, at(ALERT_CHANNELS, name, ""))
    }

    /// Creates or replaces the one of this name.
    pub fn put(self, name: &str, spec: impl Into<JsonBody<AlertChannelSpec>>) -> ApiCall<AlertChannel> {
        ApiCall::new(self.0, Method::PUT, at(ALERT_CHANNELS, name, "")).json(spec)
    }

    /// Changes the fields that are named; null removes one.
    pub fn patch(self, name: &str, change: impl Into<JsonBody<Value>>) -> ApiCall<AlertChannel> {
        ApiCall::new(self.0, Method::PATCH, at(ALERT_CHANNELS, name, "")).json(change).idempotent()
    }

    /// Deletes one. It is refused while an alert rule names the channel.
    pub fn delete(self, name: &str) -> ApiCall<Deleted> {
        ApiCall::delete(self.0, at(ALERT_CHANNELS, name, ""))
    }

    /// Sends a test message.
    pub fn test(self, name: &str) -> ApiCall<AlertChannelTested> {
        ApiCall::post(self.0, at(ALERT_CHANNELS, name, ":test"))
    }
}

/// Requests about the state of the hub.
#[derive(Clone, Copy, Debug)]
pub struct OpsApi<'c>(pub(crate) &'c Client);

impl OpsApi<'_> {
    /// The state of the hub at a glance.
    pub fn overview(self) -> ApiCall<Overview> {
        ApiCall::get(self.0, "/api/v1/ops/overview")
    }

    /// The states of services.
    pub fn services(self, query: &ServiceStatusQuery) -> ApiCall<ServiceStatusPage> {
        ApiCall::get(self.0, "/api/v1/ops/services").query(query)
    }

    /// The history of the last minutes.
    pub fn history(self, query: &HistoryQuery) -> ApiCall<History> {
        ApiCall::get(self.0, "/api/v1/ops/history").query(query)
    }

    /// The audit log, newest first.
    pub fn audit(self, page: &PageQuery) -> ApiCall<AuditPage> {
        ApiCall::get(self.0, "/api/v1/ops/audit").query(page)
    }

    /// Encrypts all secrets with a new key.
    pub fn rotate_secrets(self) -> ApiCall<KeyRotation> {
        ApiCall::post(self.0, "/api/v1/ops/secrets:rotate")
    }

    /// The state of the hub and of the circuits. No key is required.
    pub fn health(self) -> ApiCall<Health> {
        ApiCall::get(self.0, "/actuator/health")
    }

    /// Whether the process is alive. No key is required.
    pub fn liveness(self) -> ApiCall<HealthStatus> {
        ApiCall::get(self.0, "/actuator/health/liveness")
    }

    /// Whether the hub accepts events. No key is required.
    pub fn readiness(self) -> ApiCall<HealthStatus> {
        ApiCall::get(self.0, "/actuator/health/readiness")
    }
}
