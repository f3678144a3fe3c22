//! Services and rules.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::domain::delivery::Schedule;
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::port::store::StoreError;
use serde_json::{Value, json};

use super::fields::Fields;
use super::{parse, problem, success, wrong_fields};
use crate::hub::{Hub, Refused};

pub(super) async fn put_service(State(hub): State<Arc<Hub>>, body: Bytes) -> Response {
    let mut fields = match parse(&body) {
        Ok(value) => Fields::new(value),
        Err(response) => return *response,
    };
    let (name, address) = (fields.needed("name"), fields.needed("address"));
    let name = fields.parsed("name", &name, Slug::new);
    if fields.text("type").is_some_and(|kind| kind != "http") {
        fields.wrong("type", "only `http` is there so far");
    }
    if !address.is_empty() && !address.starts_with("http://") && !address.starts_with("https://") {
        fields.wrong("address", "it begins with `http://` or `https://`");
    }
    let headers = fields.pairs("headers");
    let policy = fields.any("policy").map_or_else(|| DEFAULT_POLICY.to_owned(), |policy| policy.to_string());
    let paused = fields.switch("paused", false);
    let names_auth = fields.has("auth");
    let secret = bearer(&mut fields);
    let problems = fields.end("name, type, address, auth, headers, policy, paused");
    let Some(name) = name.filter(|_| problems.is_empty()) else { return wrong_fields(&problems) };
    let before = hub.service(&name);
    let version = before.as_ref().map_or(1, |service| service.version + 1);
    let auth = match secret {
        Some(secret) => hub.keyring().seal(secret.as_bytes(), name.as_str()),
        // A secret can't be read back, so whoever changes something else does not have to know it; null takes it away.
        None if names_auth => None,
        None => before.and_then(|service| service.auth),
    };
    let service = Service { name, version, address, headers, auth, policy, paused, changed: hub.now() };
    let answer = shown_service(&service);
    refused_or(
        hub.put_service(service).await,
        if version == 1 { StatusCode::CREATED } else { StatusCode::OK },
        &answer,
    )
}

/// What a service gets that says nothing about its policy.
const DEFAULT_POLICY: &str = r#"{"attempt_timeout":"3s","retry":{"max_attempts":3},"breaker":{"consecutive_failures":5,"cooldown":"30s"},"bulkhead":{"max_calls":20}}"#;

fn bearer(fields: &mut Fields) -> Option<String> {
    let mut auth = Fields::new(fields.any("auth")?);
    if auth.needed("type") != "bearer" {
        fields.wrong("auth.type", "only `bearer` is there so far");
    }
    let secret = auth.needed("secret");
    for problem in auth.end("type, secret") {
        fields.wrong(&format!("auth.{}", problem.field), problem.reason);
    }
    Some(secret)
}

fn shown_service(service: &Service) -> Value {
    let headers: Value = service.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "name": service.name.as_str(), "version": service.version, "type": "http", "address": service.address,
        "headers": headers, "auth": service.auth.as_ref().map(|_| json!({"type": "bearer", "secret": "…"})),
        "policy": serde_json::from_str::<Value>(&service.policy).unwrap_or_default(), "paused": service.paused,
    })
}

pub(super) async fn services(State(hub): State<Arc<Hub>>) -> Response {
    success(StatusCode::OK, &hub.services().iter().map(shown_service).collect())
}

pub(super) async fn put_rule(State(hub): State<Arc<Hub>>, body: Bytes) -> Response {
    let mut fields = match parse(&body) {
        Ok(value) => Fields::new(value),
        Err(response) => return *response,
    };
    let (name, events, service) =
        (fields.needed("name"), fields.needed("eventType"), fields.needed("service"));
    let name = fields.parsed("name", &name, Slug::new);
    let events = fields.parsed("eventType", &events, Pattern::new);
    let service = fields.parsed("service", &service, Slug::new);
    if let Some(missing) = service.as_ref().filter(|service| hub.service(service).is_none()) {
        fields.wrong("service", format!("there is no service `{missing}`; register it first"));
    }
    let filter = fields.text("filter");
    let method = fields.text("method").unwrap_or_else(|| "POST".into());
    let path = fields.text("path").unwrap_or_else(|| "/".into());
    let headers = fields.pairs("headers");
    let body = fields.any("body").map(|body| body.to_string());
    let enabled = fields.switch("enabled", true);
    let problems = fields.end("name, eventType, filter, service, method, path, headers, body, enabled");
    let (Some(name), Some(events), Some(service), true) = (name, events, service, problems.is_empty()) else {
        return wrong_fields(&problems);
    };
    let version = hub.rule(&name).map_or(1, |rule| rule.version + 1);
    let (schedule, changed) = (Schedule::default(), hub.now());
    let rule = Rule {
        name,
        version,
        events,
        filter,
        service,
        method,
        path,
        headers,
        body,
        schedule,
        enabled,
        changed,
    };
    let answer = shown_rule(&rule);
    refused_or(
        hub.put_rule(rule).await,
        if version == 1 { StatusCode::CREATED } else { StatusCode::OK },
        &answer,
    )
}

fn shown_rule(rule: &Rule) -> Value {
    let headers: Value = rule.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "name": rule.name.as_str(), "version": rule.version, "eventType": rule.events.to_string(),
        "filter": rule.filter, "service": rule.service.as_str(), "method": rule.method, "path": rule.path,
        "headers": headers, "body": rule.body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok()),
        "enabled": rule.enabled,
    })
}

pub(super) async fn rules(State(hub): State<Arc<Hub>>) -> Response {
    success(StatusCode::OK, &hub.rules().iter().map(shown_rule).collect())
}

fn refused_or(done: Result<(), Refused>, status: StatusCode, data: &Value) -> Response {
    match done {
        Ok(()) => success(status, data),
        Err(Refused::Wrong(problems)) => {
            let problem = |(field, reason)| super::FieldProblem { field, reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        Err(Refused::Store(error)) => store_problem(&error),
    }
}

pub(super) fn store_problem(error: &StoreError) -> Response {
    let (status, code, retryable) = match error {
        StoreError::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale", false),
        StoreError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", true),
        StoreError::Full => (StatusCode::INSUFFICIENT_STORAGE, "full", true),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "store", true),
    };
    problem(status, code, &error.to_string(), retryable)
}
