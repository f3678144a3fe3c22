//! The routes of operations, alerts, metrics and health, and those of a demo.

use axum::routing::{delete, get, patch, post, put};
use seawall_api::{
    AcceptedEvent, Alert, AlertChannel, AlertChannelSpec, AlertChannelTested, AlertPage, AlertQuery,
    AlertRule, AlertRuleDeleted, AlertRuleSpec, AuditPage, Deleted, Health, HealthStatus, History,
    HistoryQuery, KeyRotation, Metric, MetricNames, MetricQuery, MuteInput, Operation, OperationPage,
    Overview, PageQuery, Reason, ReasonInput, ServiceStatusPage, ServiceStatusQuery,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::key::Scope;

use super::row::{CHANGE_FAILS, DELETE, GET, JSON, PATCH, POST, PUT, Route, VERSIONS, public_route, route};
use crate::http::alerts::{channels, incidents, rules};
use crate::http::bridge::webhook;
use crate::http::dead_letters::operations;
use crate::http::health;
use crate::http::health::metrics;
use crate::http::openapi;
use crate::http::openapi::schema::{any, shape, text};
use crate::http::ops::{audit, demo, secrets, status};
use crate::http::registry::resource;

#[rustfmt::skip]
pub(super) fn routes() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/ops/operations", Read, "List bulk operations, newest first", get(operations::list)).returns::<OperationPage>(200).query::<PageQuery>().fails(&["invalid"]),
        route(GET, "/api/v1/ops/operations/{id}", Read, "Get a bulk operation with its progress and what it waits for", get(operations::get)).returns::<Operation>(200),
        route(POST, "/api/v1/ops/operations/{id}:pause", Operate, "Pause the operation; replays already started will finish", post(operations::pause)).may_take::<ReasonInput>().returns::<Operation>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/ops/operations/{id}:resume", Operate, "Resume the operation; one that its canary stopped continues without a canary", post(operations::resume)).may_take::<ReasonInput>().returns::<Operation>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/ops/operations/{id}:cancel", Operate, "Cancel the operation; replays already started will finish", post(operations::cancel)).may_take::<ReasonInput>().returns::<Operation>(200).fails(&["conflict", "invalid"]),
        route(GET, "/api/v1/ops/overview", Read, "Get the overview and what needs attention", get(status::overview)).returns::<Overview>(200).in_memory()
            .more("Covers what the key may see. Counts from the store are refreshed every five seconds at most"),
        route(GET, "/api/v1/ops/services", Read, "List the status of each service", get(status::services)).returns::<ServiceStatusPage>(200).query::<ServiceStatusQuery>().fails(&["invalid"]).in_memory(),
        route(GET, "/api/v1/ops/history", Read, "Get recent metrics as a time series", get(status::history)).returns::<History>(200).query::<HistoryQuery>().fails(&["invalid", "notFound"]).in_memory()
            .more("Covers one service, or all together. The history is in memory and starts again with the hub"),
        route(POST, "/api/v1/ops/secrets:rotate", Admin, "Encrypt all secrets with a new key", post(secrets::rotate)).returns::<KeyRotation>(200).fails(&["conflict"]),
        route(GET, "/api/v1/ops/alerts", Read, "List incidents, newest first", get(incidents::list)).returns::<AlertPage>(200).query::<AlertQuery>().fails(&["invalid"])
            .more("A key that is restricted to some services sees their incidents, and none of the hub itself"),
        route(GET, "/api/v1/ops/alerts/{id}", Read, "Get an incident with its notifications", get(incidents::get)).returns::<Alert>(200),
        route(POST, "/api/v1/ops/alerts/{id}:acknowledge", Operate, "Acknowledge the incident", post(incidents::acknowledge)).may_take::<Reason>().returns::<Alert>(200).fails(&["conflict", "invalid"]),
        route(POST, "/api/v1/ops/alerts/{id}:mute", Operate, "Mute the incident for a while", post(incidents::mute)).takes::<MuteInput>().returns::<Alert>(200).fails(&["conflict", "invalid"])
            .more("If the incident is still open when the mute ends, notifications are sent then"),
        route(POST, "/api/v1/ops/alerts/{id}:unmute", Operate, "Unmute the incident", post(incidents::unmute)).returns::<Alert>(200).fails(&["conflict"]),
        route(GET, "/api/v1/ops/alertRules", Read, "List alert rules", get(resource::list::<domain::alert::AlertRule>)).returns::<Vec<AlertRule>>(200).in_memory(),
        route(GET, "/api/v1/ops/alertRules/{name}", Read, "Get an alert rule", get(resource::get::<domain::alert::AlertRule>)).returns::<AlertRule>(200).etag().in_memory(),
        route(PUT, "/api/v1/ops/alertRules/{name}", Admin, "Create or replace an alert rule", put(resource::replace::<domain::alert::AlertRule>)).writes::<AlertRuleSpec, AlertRule>().returns::<AlertRule>(201).returns::<AlertRule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS)
            .more("Fields that are omitted get their defaults. Incidents of a disabled rule are resolved"),
        route(PATCH, "/api/v1/ops/alertRules/{name}", Admin, "Update some fields of an alert rule", patch(resource::change::<domain::alert::AlertRule>)).writes::<AlertRuleSpec, AlertRule>().returns::<AlertRule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS),
        route(DELETE, "/api/v1/ops/alertRules/{name}", Admin, "Delete an alert rule; a built-in rule is reset to its defaults", delete(rules::delete)).returns::<AlertRuleDeleted>(200).with(VERSIONS).fails(&["badVersion", "stale"]),
        route(POST, "/api/v1/ops/alertRules/{name}:mute", Operate, "Mute the alert rule for a while", post(rules::mute)).takes::<MuteInput>().returns::<AlertRule>(200).etag().fails(&["stale", "invalid"]),
        route(POST, "/api/v1/ops/alertRules/{name}:unmute", Operate, "Unmute the alert rule", post(rules::unmute)).returns::<AlertRule>(200).etag().fails(&["stale", "invalid"]),
        route(GET, "/api/v1/ops/alertChannels", Read, "List notification channels", get(channels::list)).returns::<Vec<AlertChannel>>(200).in_memory(),
        route(GET, "/api/v1/ops/alertChannels/{name}", Read, "Get a notification channel", get(resource::get::<domain::alert::Channel>)).returns::<AlertChannel>(200).etag().in_memory(),
        route(PUT, "/api/v1/ops/alertChannels/{name}", Admin, "Create or replace a notification channel", put(resource::replace::<domain::alert::Channel>)).writes::<AlertChannelSpec, AlertChannel>().returns::<AlertChannel>(201).returns::<AlertChannel>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal", "conflict"])
            .more("A secret that is omitted stays; null removes it. Pending notifications of the channel are sent immediately"),
        route(PATCH, "/api/v1/ops/alertChannels/{name}", Admin, "Update some fields of a notification channel", patch(resource::change::<domain::alert::Channel>)).writes::<AlertChannelSpec, AlertChannel>().returns::<AlertChannel>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal", "conflict"]),
        route(DELETE, "/api/v1/ops/alertChannels/{name}", Admin, "Delete a notification channel", delete(resource::delete::<domain::alert::Channel>)).returns::<Deleted>(200).with(VERSIONS).fails(&["badVersion", "stale", "conflict"])
            .more("Rejected while an alert rule names the channel"),
        route(POST, "/api/v1/ops/alertChannels/{name}:test", Operate, "Send a test message and return the result", post(channels::test)).returns::<AlertChannelTested>(200).in_memory()
            .more("The message states that it is a test"),
        route(GET, "/api/v1/ops/audit", Admin, "List the audit log, newest first", get(audit::list)).returns::<AuditPage>(200).query::<PageQuery>().fails(&["invalid"]),
    ]
}

/// The metrics. They name all services, so they need a key, unless `--metrics open` says that everybody may read them.
#[rustfmt::skip]
pub(super) fn metrics() -> Vec<Route> {
    use Scope::Read;
    vec![
        route(GET, "/actuator/metrics", Read, "List the names of all metrics", get(metrics::names)).returns_plain::<MetricNames>().in_memory()
            .more("In the format of Spring's actuator, without the envelope. No key is required if the hub was started with `--metrics open`; a key that is restricted to some services is rejected"),
        route(GET, "/actuator/metrics/{name}", Read, "Get a metric", get(metrics::one)).returns_plain::<Metric>().in_memory().query::<MetricQuery>().fails(&["invalid"])
            .more("In the format of Spring's actuator, without the envelope. No key is required if the hub was started with `--metrics open`; a key that is restricted to some services is rejected"),
        route(GET, "/metrics", Read, "Get all metrics in the format of Prometheus", get(metrics::prometheus)).gives_plain("text/plain; version=0.0.4; charset=utf-8", text()).in_memory()
            .more("No key is required if the hub was started with `--metrics open`; a key that is restricted to some services is rejected"),
    ]
}

/// The routes that only the hub of a demo has. They are no part of the API, and not in its description.
pub(super) fn demo() -> Vec<Route> {
    use Scope::{Operate, Read};
    let (upstreams, set) = ("/api/v1/demo/upstreams", "/api/v1/demo/upstreams/{name}:set");
    vec![
        route(GET, upstreams, Read, "List the sample services and their states", get(demo::list)),
        route(POST, set, Operate, "Break or restore a sample service", post(demo::set)),
        route(GET, "/api/v1/demo/story", Read, "Get the scripted outage so far", get(demo::story)),
    ]
}

/// All routes for which no key is needed.
#[rustfmt::skip]
pub(super) fn public() -> Vec<Route> {
    vec![
        public_route(GET, "/actuator/health", "Get the health of the hub and the circuits that are not closed", get(health::health)).returns::<Health>(200).in_memory(),
        public_route(GET, "/actuator/health/liveness", "Liveness probe", get(health::liveness)).returns::<HealthStatus>(200).fails(&["stuck"]).in_memory(),
        public_route(GET, "/actuator/health/readiness", "Readiness probe", get(health::readiness)).returns::<HealthStatus>(200).fails(&["notReady", "damaged"]).in_memory(),
        public_route(GET, "/openapi.json", "Get this description", get(openapi::openapi)).gives_plain(JSON, shape("OpenApi")).in_memory(),
        public_route(GET, "/docs", "Get this description as a page to read and try", get(openapi::docs)).gives_plain("text/html; charset=utf-8", text()).in_memory(),
        public_route(POST, "/in/{source}", "Accept a webhook", post(webhook::webhook)).takes_also("*/*", any()).returns::<AcceptedEvent>(202).fails(&["unverified", "tooLarge", "invalid"])
            .more("The webhook is verified as its source is configured, so no key is required. A duplicate gets the response of the first and creates no second event"),
    ]
}
