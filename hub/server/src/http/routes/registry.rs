//! The routes of services, rules, sources and keys.

use axum::routing::{delete, get, patch, post, put};
use seawall_api::{
    Backtest, BacktestInput, Circuit, CircuitChange, CreatedKey, DeleteQuery, Deleted, EvaluateInput,
    Evaluation, Key, KeySpec, Reason, RequiredReason, RollbackInput, RotateInput, Rule, RuleSpec, Service,
    ServiceSpec, Source, SourceSpec, TestRequest, TestResult,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::key::Scope;

use super::row::{CHANGE_FAILS, DELETE, GET, ONCE, ONCE_FAILS, PATCH, POST, PUT, Route, VERSIONS, route};
use crate::http::registry::{circuits, evaluate, keys, resource, rules, services};

#[rustfmt::skip]
pub(super) fn routes() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/registry/services", Read, "List services", get(services::list)).returns::<Vec<Service>>(200).in_memory(),
        route(POST, "/api/v1/registry/services", Admin, "Create or update a service", post(resource::create::<domain::service::Service>)).writes::<ServiceSpec, Service>().returns::<Service>(201).returns::<Service>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).with(ONCE).fails(ONCE_FAILS).fails(&["seal"])
            .more("Replaces a service of the same name. Without `auth` its credentials stay; `auth: null` removes them"),
        route(GET, "/api/v1/registry/services/{name}", Read, "Get a service", get(resource::get::<domain::service::Service>)).returns::<Service>(200).etag().in_memory(),
        route(PUT, "/api/v1/registry/services/{name}", Admin, "Create or replace a service", put(resource::replace::<domain::service::Service>)).writes::<ServiceSpec, Service>().returns::<Service>(201).returns::<Service>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        route(PATCH, "/api/v1/registry/services/{name}", Admin, "Update some fields of a service", patch(resource::change::<domain::service::Service>)).writes::<ServiceSpec, Service>().returns::<Service>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        route(DELETE, "/api/v1/registry/services/{name}", Admin, "Delete a service", delete(resource::delete_with_pending::<domain::service::Service>)).returns::<Deleted>(200).query::<DeleteQuery>().with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"])
            .more("Rejected while a rule sends to the service"),
        route(POST, "/api/v1/registry/services/{name}:test", Operate, "Send a test request", post(services::test)).may_take::<TestRequest>().returns::<TestResult>(200).fails(&["invalid"]).in_memory()
            .more("The request goes through the policies of the service and counts there"),
        route(POST, "/api/v1/registry/services/{name}:pause", Operate, "Pause its deliveries", post(services::pause)).returns::<Service>(200).etag().fails(&["stale"]),
        route(POST, "/api/v1/registry/services/{name}:resume", Operate, "Resume its deliveries", post(services::resume)).returns::<Service>(200).etag().fails(&["stale"]),
        route(GET, "/api/v1/registry/services/{name}/circuit", Read, "Get its circuit with its history", get(circuits::get)).returns::<Circuit>(200),
        route(POST, "/api/v1/registry/services/{name}/circuit:reset", Operate, "Close the circuit and clear its counts", post(circuits::reset)).may_take::<Reason>().returns::<CircuitChange>(200).fails(&["invalid"]),
        route(POST, "/api/v1/registry/services/{name}/circuit:forceOpen", Operate, "Force the circuit open: reject every call until it is reset", post(circuits::force_open)).takes::<RequiredReason>().returns::<CircuitChange>(200).fails(&["invalid"]),
        route(POST, "/api/v1/registry/services/{name}/circuit:forceClosed", Operate, "Force the circuit closed: admit every call until it is reset", post(circuits::force_closed)).takes::<RequiredReason>().returns::<CircuitChange>(200).fails(&["invalid"]),
        route(GET, "/api/v1/registry/rules", Read, "List rules", get(resource::list::<domain::rule::Rule>)).returns::<Vec<Rule>>(200).in_memory(),
        route(POST, "/api/v1/registry/rules", Admin, "Create or update a rule", post(resource::create::<domain::rule::Rule>)).writes::<RuleSpec, Rule>().returns::<Rule>(201).returns::<Rule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).with(ONCE).fails(ONCE_FAILS)
            .more("Replaces a rule of the same name; the previous version stays available"),
        route(POST, "/api/v1/registry/rules:evaluate", Read, "Render the exact request of a rule for an event", post(evaluate::evaluate)).takes::<EvaluateInput>().returns::<Evaluation>(200).fails(&["notFound", "invalid"]),
        route(GET, "/api/v1/registry/rules/{name}", Read, "Get a rule", get(resource::get::<domain::rule::Rule>)).returns::<Rule>(200).etag().in_memory(),
        route(PUT, "/api/v1/registry/rules/{name}", Admin, "Create or replace a rule", put(resource::replace::<domain::rule::Rule>)).writes::<RuleSpec, Rule>().returns::<Rule>(201).returns::<Rule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS),
        route(PATCH, "/api/v1/registry/rules/{name}", Admin, "Update some fields of a rule", patch(resource::change::<domain::rule::Rule>)).writes::<RuleSpec, Rule>().returns::<Rule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS),
        route(DELETE, "/api/v1/registry/rules/{name}", Admin, "Delete a rule", delete(resource::delete_with_pending::<domain::rule::Rule>)).returns::<Deleted>(200).query::<DeleteQuery>().with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"]),
        route(GET, "/api/v1/registry/rules/{name}/versions", Read, "List the versions of a rule", get(rules::versions)).returns::<Vec<Rule>>(200),
        route(POST, "/api/v1/registry/rules/{name}:backtest", Read, "Apply a rule to recent events, without sending anything", post(evaluate::backtest)).may_take::<BacktestInput>().returns::<Backtest>(200).fails(&["invalid"]),
        route(POST, "/api/v1/registry/rules/{name}:enable", Operate, "Enable a rule and release its held deliveries", post(rules::enable)).returns::<Rule>(200).etag().fails(&["notJson", "stale", "invalid"]),
        route(POST, "/api/v1/registry/rules/{name}:disable", Operate, "Disable a rule; matching events are held", post(rules::disable)).may_take::<Reason>().returns::<Rule>(200).etag().fails(&["stale", "invalid"]),
        route(POST, "/api/v1/registry/rules/{name}:rollback", Admin, "Restore an earlier version of a rule", post(rules::roll_back)).takes::<RollbackInput>().returns::<Rule>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["conflict"])
            .more("The restored content becomes a new version"),
        route(GET, "/api/v1/registry/sources", Read, "List webhook sources", get(resource::list::<domain::source::Source>)).returns::<Vec<Source>>(200).in_memory(),
        route(POST, "/api/v1/registry/sources", Admin, "Create or update a source", post(resource::create::<domain::source::Source>)).writes::<SourceSpec, Source>().returns::<Source>(201).returns::<Source>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).with(ONCE).fails(ONCE_FAILS).fails(&["seal"])
            .more("Replaces a source of the same name"),
        route(GET, "/api/v1/registry/sources/{name}", Read, "Get a source", get(resource::get::<domain::source::Source>)).returns::<Source>(200).etag().in_memory(),
        route(PUT, "/api/v1/registry/sources/{name}", Admin, "Create or replace a source", put(resource::replace::<domain::source::Source>)).writes::<SourceSpec, Source>().returns::<Source>(201).returns::<Source>(200).etag().with(VERSIONS).fails(CHANGE_FAILS).fails(&["seal"]),
        route(DELETE, "/api/v1/registry/sources/{name}", Admin, "Delete a source", delete(resource::delete::<domain::source::Source>)).returns::<Deleted>(200).with(VERSIONS).fails(&["badVersion", "stale"]),
        route(GET, "/api/v1/registry/keys", Admin, "List keys, without their secrets", get(keys::list)).returns::<Vec<Key>>(200).in_memory(),
        route(POST, "/api/v1/registry/keys", Admin, "Create a key; it is shown only once", post(keys::make)).takes::<KeySpec>().returns::<CreatedKey>(201).fails(&["conflict", "invalid"]).with(ONCE).fails(ONCE_FAILS),
        route(DELETE, "/api/v1/registry/keys/{name}", Admin, "Revoke a key immediately", delete(keys::revoke)).returns::<Key>(200).fails(&["conflict"]),
        route(POST, "/api/v1/registry/keys/{name}:rotate", Admin, "Replace a key with a new one of the same name", post(keys::rotate)).may_take::<RotateInput>().returns::<CreatedKey>(200).fails(&["invalid"]),
    ]
}
