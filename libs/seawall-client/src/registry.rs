//! Services, circuits, rules, sources and keys.

use seawall_api::{
    Backtest, BacktestInput, Circuit, CircuitChange, CreatedKey, DeleteQuery, Deleted, EvaluateInput,
    Evaluation, Key, KeySpec, PendingPolicy, Reason, RequiredReason, RollbackInput, RotateInput, Rule,
    RuleSpec, Service, ServiceSpec, Source, SourceSpec, TestRequest, TestResult,
};
use seawall_http::Method;
use serde_json::Value;

use crate::call::ApiCall;
use crate::client::Client;
use crate::json::JsonBody;
use crate::path::at;

const SERVICES: &str = "/api/v1/registry/services";
const RULES: &str = "/api/v1/registry/rules";
const SOURCES: &str = "/api/v1/registry/sources";
const KEYS: &str = "/api/v1/registry/keys";

impl Client {
    /// The services that the hub calls.
    #[must_use]
    pub fn services(&self) -> ServicesApi<'_> {
        ServicesApi(self)
    }

    /// The circuits of services.
    #[must_use]
    pub fn circuits(&self) -> CircuitsApi<'_> {
        CircuitsApi(self)
    }

    /// The rules that turn events into requests.
    #[must_use]
    pub fn rules(&self) -> RulesApi<'_> {
        RulesApi(self)
    }

    /// The sources of webhooks.
    #[must_use]
    pub fn sources(&self) -> SourcesApi<'_> {
        SourcesApi(self)
    }

    /// The keys of the API.
    #[must_use]
    pub fn keys(&self) -> KeysApi<'_> {
        KeysApi(self)
    }
}

/// Requests about services.
#[derive(Clone, Copy, Debug)]
pub struct ServicesApi<'c>(pub(crate) &'c Client);

impl ServicesApi<'_> {
    /// Lists services.
    pub fn list(self) -> ApiCall<Vec<Service>> {
        ApiCall::get(self.0, SERVICES)
    }

    /// Reads one.
    pub fn get(self, name: &str) -> ApiCall<Service> {
        ApiCall::get(self.0, at(SERVICES, name, ""))
    }

    /// Creates one, or replaces the one of the same name. The request has an idempotency key.
    pub fn create(self, spec: impl Into<JsonBody<ServiceSpec>>) -> ApiCall<Service> {
        ApiCall::post(self.0, SERVICES).json(spec).keyed()
    }

    /// Creates or replaces the one of this name.
    pub fn put(self, spec: &ServiceSpec) -> ApiCall<Service> {
        ApiCall::new(self.0, Method::PUT, at(SERVICES, spec.name.as_str(), "")).json(spec)
    }

    /// Changes the fields that are named; null removes one.
    pub fn patch(self, name: &str, change: impl Into<JsonBody<Value>>) -> ApiCall<Service> {
        ApiCall::new(self.0, Method::PATCH, at(SERVICES, name, "")).json(change).idempotent()
    }

    /// Deletes one. Pending deliveries are a reason to refuse, or are dead-lettered.
    pub fn delete(self, name: &str, pending: PendingPolicy) -> ApiCall<Deleted> {
        ApiCall::delete(self.0, at(SERVICES, name, "")).query(&DeleteQuery { pending })
    }

    /// Pauses its deliveries.
    pub fn pause(self, name: &str) -> ApiCall<Service> {
        ApiCall::post(self.0, at(SERVICES, name, ":pause")).idempotent()
    }

    /// Resumes its deliveries.
    pub fn resume(self, name: &str) -> ApiCall<Service> {
        ApiCall::post(self.0, at(SERVICES, name, ":resume")).idempotent()
    }

    /// Sends one request through its policies.
    pub fn test(self, name: &str, request: &TestRequest) -> ApiCall<TestResult> {
        ApiCall::post(self.0, at(SERVICES, name, ":test")).json(request)
    }
}

/// Requests about the circuits of services.
#[derive(Clone, Copy, Debug)]
pub struct CircuitsApi<'c>(pub(crate) &'c Client);

impl CircuitsApi<'_> {
    /// Reads the circuit of a service, with its history.
    pub fn get(self, service: &str) -> ApiCall<Circuit> {
        ApiCall::get(self.0, at(SERVICES, service, "/circuit"))
    }

    /// Closes the circuit and clears its counts.
    pub fn reset(self, service: &str, reason: &Reason) -> ApiCall<CircuitChange> {
        ApiCall::post(self.0, at(SERVICES, service, "/circuit:reset")).json(reason)
    }

    /// Rejects every call until the circuit is reset.
    pub fn force_open(self, service: &str, reason: &RequiredReason) -> ApiCall<CircuitChange> {
        ApiCall::post(self.0, at(SERVICES, service, "/circuit:forceOpen")).json(reason)
    }

    /// Admits every call until the circuit is reset.
    pub fn force_closed(self, service: &str, reason: &RequiredReason) -> ApiCall<CircuitChange> {
        ApiCall::post(self.0, at(SERVICES, service, "/circuit:forceClosed")).json(reason)
    }
}

/// Requests about rules.
#[derive(Clone, Copy, Debug)]
pub struct RulesApi<'c>(pub(crate) &'c Client);

impl RulesApi<'_> {
    /// Lists rules.
    pub fn list(self) -> ApiCall<Vec<Rule>> {
        ApiCall::get(self.0, RULES)
    }

    /// Reads one.
    pub fn get(self, name: &str) -> ApiCall<Rule> {
        ApiCall::get(self.0, at(RULES, name, ""))
    }

    /// Creates one, or replaces the one of the same name. The request has an idempotency key.
    pub fn create(self, spec: impl Into<JsonBody<RuleSpec>>) -> ApiCall<Rule> {
        ApiCall::post(self.0, RULES).json(spec).keyed()
    }

    /// Creates or replaces the one of this name.
    pub fn put(self, spec: &RuleSpec) -> ApiCall<Rule> {
        ApiCall::new(self.0, Method::PUT, at(RULES, spec.name.as_str(), "")).json(spec)
    }

    /// Changes the fields that are named; null removes one.
    pub fn patch(self, name: &str, change: impl Into<JsonBody<Value>>) -> ApiCall<Rule> {
        ApiCall::new(self.0, Method::PATCH, at(RULES, name, "")).json(change).idempotent()
    }

    /// Deletes one. Pending deliveries are a reason to refuse, or are dead-lettered.
    pub fn delete(self, name: &str, pending: PendingPolicy) -> ApiCall<Deleted> {
        ApiCall::delete(self.0, at(RULES, name, "")).query(&DeleteQuery { pending })
    }

    /// Lists the versions of a rule.
    pub fn versions(self, name: &str) -> ApiCall<Vec<Rule>> {
        ApiCall::get(self.0, at(RULES, name, "/versions"))
    }

    /// Enables a rule and releases its held deliveries.
    pub fn enable(self, name: &str) -> ApiCall<Rule> {
        ApiCall::post(self.0, at(RULES, name, ":enable")).idempotent()
    }

    /// Disables a rule; matching events are held.
    pub fn disable(self, name: &str, note: &Reason) -> ApiCall<Rule> {
        ApiCall::post(self.0, at(RULES, name, ":disable")).json(note).idempotent()
    }

    /// Restores an earlier version. Its content becomes a new version.
    pub fn rollback(self, name: &str, version: u64) -> ApiCall<Rule> {
        ApiCall::post(self.0, at(RULES, name, ":rollback")).json(&RollbackInput { version })
    }

    /// The request that a rule renders for an event, which is not sent.
    pub fn evaluate(self, input: impl Into<JsonBody<EvaluateInput>>) -> ApiCall<Evaluation> {
        ApiCall::post(self.0, format!("{RULES}:evaluate")).json(input).idempotent()
    }

    /// Applies a rule to stored events, without sending anything.
    pub fn backtest(self, name: &str, input: impl Into<JsonBody<BacktestInput>>) -> ApiCall<Backtest> {
        ApiCall::post(self.0, at(RULES, name, ":backtest")).json(input).idempotent()
    }
}

/// Requests about webhook sources.
#[derive(Clone, Copy, Debug)]
pub struct SourcesApi<'c>(pub(crate) &'c Client);

impl SourcesApi<'_> {
    /// Lists sources.
    pub fn list(self) -> ApiCall<Vec<Source>> {
        ApiCall::get(self.0, SOURCES)
    }

    /// Reads one.
    pub fn get(self, name: &str) -> ApiCall<Source> {
        ApiCall::get(self.0, at(SOURCES, name, ""))
    }

    /// Creates one, or replaces the one of the same name. The request has an idempotency key.
    pub fn create(self, spec: impl Into<JsonBody<SourceSpec>>) -> ApiCall<Source> {
        ApiCall::post(self.0, SOURCES).json(spec).keyed()
    }

    /// Creates or replaces the one of this name.
    pub fn put(self, spec: &SourceSpec) -> ApiCall<Source> {
        ApiCall::new(self.0, Method::PUT, at(SOURCES, spec.name.as_str(), "")).json(spec)
    }

    /// Deletes one.
    pub fn delete(self, name: &str) -> ApiCall<Deleted> {
        ApiCall::delete(self.0, at(SOURCES, name, ""))
    }
}

/// Requests about keys.
#[derive(Clone, Copy, Debug)]
pub struct KeysApi<'c>(pub(crate) &'c Client);

impl KeysApi<'_> {
    /// Lists keys, without their secrets.
    pub fn list(self) -> ApiCall<Vec<Key>> {
        ApiCall::get(self.0, KEYS)
    }

    /// Creates a key. It is returned only once; the request has an idempotency key.
    pub fn create(self, spec: &KeySpec) -> ApiCall<CreatedKey> {
        ApiCall::post(self.0, KEYS).json(spec).keyed()
    }

    /// Replaces a key with a new one of the same name.
    pub fn rotate(self, name: &str, input: &RotateInput) -> ApiCall<CreatedKey> {
        ApiCall::post(self.0, at(KEYS, name, ":rotate")).json(input)
    }

    /// Revokes a key immediately.
    pub fn revoke(self, name: &str) -> ApiCall<Key> {
        ApiCall::delete(self.0, at(KEYS, name, ""))
    }
}
