//! Every route, in one table: who may use it, what it is for, and who handles it.
//!
//! The router, the check of scopes and the description of the API are made of this table, so none of them can forget a route.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use seawall_hub_core::domain::key::Scope;

use super::desk::{self, groups, letters, many, operations};
use super::{
    actuator, alert_channels, alert_rules, alerts, audit, circuits, deliveries, demo, evaluate, events,
    gateway, keys, metrics, openapi, ops, rules, secrets, services, sources,
};
use crate::hub::Hub;

/// A route. A path may end with a verb: `/…/services/{name}:pause`.
pub(crate) struct Route {
    /// `GET`, `POST`, …
    pub(crate) method: Method,
    /// With its parameters in braces, and its verb.
    pub(crate) path: &'static str,
    /// What a key must be allowed to do.
    pub(crate) scope: Scope,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    handler: MethodRouter<Arc<Hub>>,
}

fn route(
    method: Method,
    path: &'static str,
    scope: Scope,
    about: &'static str,
    handler: MethodRouter<Arc<Hub>>,
) -> Route {
    Route { method, path, scope, about, handler }
}

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PUT: Method = Method::PUT;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

/// All routes for which a key is needed.
pub(crate) fn routes() -> Vec<Route> {
    [registry(), bridge(), dead_letters(), ops(), metrics()].into_iter().flatten().collect()
}

#[rustfmt::skip]
fn registry() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/registry/services", Read, "All services", get(services::list)),
        route(POST, "/api/v1/registry/services", Admin, "Registers a service, or changes one", post(services::put)),
        route(GET, "/api/v1/registry/services/{name}", Read, "A service", get(services::get)),
        route(PUT, "/api/v1/registry/services/{name}", Admin, "Replaces a service", put(services::replace)),
        route(PATCH, "/api/v1/registry/services/{name}", Admin, "Changes the fields that are named", patch(services::change)),
        route(DELETE, "/api/v1/registry/services/{name}", Admin, "Deletes a service", delete(services::delete)),
        route(POST, "/api/v1/registry/services/{name}:test", Operate, "Sends one request to see whether it answers", post(services::act)),
        route(POST, "/api/v1/registry/services/{name}:pause", Operate, "Holds its deliveries", post(services::act)),
        route(POST, "/api/v1/registry/services/{name}:resume", Operate, "Lets its deliveries go on", post(services::act)),
        route(GET, "/api/v1/registry/services/{name}/circuit", Read, "Its circuit, with what it went through", get(circuits::get)),
        route(POST, "/api/v1/registry/services/{name}/circuit:reset", Operate, "Closes the circuit and forgets what it counted", post(circuits::act)),
        route(POST, "/api/v1/registry/services/{name}/circuit:forceOpen", Operate, "Lets nothing through until somebody says otherwise", post(circuits::act)),
        route(POST, "/api/v1/registry/services/{name}/circuit:forceClosed", Operate, "Lets everything through until somebody says otherwise", post(circuits::act)),
        route(GET, "/api/v1/registry/rules", Read, "All rules", get(rules::list)),
        route(POST, "/api/v1/registry/rules", Admin, "Registers a rule, or changes one", post(rules::put)),
        route(POST, "/api/v1/registry/rules:evaluate", Read, "The exact request that a rule makes of an event", post(evaluate::evaluate)),
        route(GET, "/api/v1/registry/rules/{name}", Read, "A rule", get(rules::get)),
        route(PUT, "/api/v1/registry/rules/{name}", Admin, "Replaces a rule", put(rules::replace)),
        route(PATCH, "/api/v1/registry/rules/{name}", Admin, "Changes the fields that are named", patch(rules::change)),
        route(DELETE, "/api/v1/registry/rules/{name}", Admin, "Deletes a rule", delete(rules::delete)),
        route(GET, "/api/v1/registry/rules/{name}/versions", Read, "Every version of a rule", get(rules::versions)),
        route(POST, "/api/v1/registry/rules/{name}:backtest", Read, "What a rule makes of the events that came lately", post(rules::act)),
        route(POST, "/api/v1/registry/rules/{name}:enable", Operate, "Puts a rule to work", post(rules::act)),
        route(POST, "/api/v1/registry/rules/{name}:disable", Operate, "Holds what a rule matches", post(rules::act)),
        route(POST, "/api/v1/registry/rules/{name}:rollback", Admin, "Goes back to a version before", post(rules::act)),
        route(GET, "/api/v1/registry/sources", Read, "All sources of webhooks", get(sources::list)),
        route(POST, "/api/v1/registry/sources", Admin, "Registers a source, or changes one", post(sources::put)),
        route(GET, "/api/v1/registry/sources/{name}", Read, "A source", get(sources::get)),
        route(PUT, "/api/v1/registry/sources/{name}", Admin, "Replaces a source", put(sources::replace)),
        route(DELETE, "/api/v1/registry/sources/{name}", Admin, "Deletes a source", delete(sources::delete)),
        route(GET, "/api/v1/registry/keys", Admin, "All keys, without what is secret", get(keys::list)),
        route(POST, "/api/v1/registry/keys", Admin, "Makes a key; it is shown this once", post(keys::make)),
        route(DELETE, "/api/v1/registry/keys/{name}", Admin, "Takes a key back, at once", delete(keys::revoke)),
        route(POST, "/api/v1/registry/keys/{name}:rotate", Admin, "Another key under the same name", post(keys::act)),
    ]
}

#[rustfmt::skip]
fn bridge() -> Vec<Route> {
    use Scope::{Call, Ingest, Read};
    vec![
        route(POST, "/api/v1/gateway/services/{name}:call", Call, "Calls a service now, later, or now and otherwise later", post(gateway::act)),
        route(POST, "/api/v1/bridge/events", Ingest, "Accepts an event", post(events::accept)),
        route(GET, "/api/v1/bridge/events", Read, "Events, the newest first", get(events::list)),
        route(POST, "/api/v1/bridge/events:batchCreate", Ingest, "Accepts several events", post(events::accept_batch)),
        route(GET, "/api/v1/bridge/events/{id}", Read, "An event", get(events::get)),
        route(GET, "/api/v1/bridge/deliveries", Read, "Deliveries, the newest first", get(deliveries::list)),
        route(GET, "/api/v1/bridge/deliveries/{id}", Read, "A delivery with its tries", get(deliveries::get)),
    ]
}

#[rustfmt::skip]
fn dead_letters() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/bridge/deadLetters", Read, "Dead letters, the newest first", get(letters::list)),
        route(GET, "/api/v1/bridge/deadLetters:export", Read, "Dead letters with all evidence, a line of JSON each", get(desk::export)),
        route(POST, "/api/v1/bridge/deadLetters:replay", Operate, "Sends many again, first a few and then the rest", post(many::replay)),
        route(POST, "/api/v1/bridge/deadLetters:park", Operate, "Puts many aside", post(many::park)),
        route(POST, "/api/v1/bridge/deadLetters:unpark", Operate, "Opens many that were put aside", post(many::unpark)),
        route(POST, "/api/v1/bridge/deadLetters:delete", Operate, "Many go out of sight", post(many::delete)),
        route(POST, "/api/v1/bridge/deadLetters:restore", Operate, "Many that were deleted are back", post(many::restore)),
        route(POST, "/api/v1/bridge/deadLetters:purge", Admin, "Many go for good, with their evidence", post(many::purge)),
        route(GET, "/api/v1/bridge/deadLetters/{id}", Read, "A dead letter with all evidence", get(letters::get)),
        route(PATCH, "/api/v1/bridge/deadLetters/{id}", Operate, "Writes a note about it", patch(letters::change)),
        route(DELETE, "/api/v1/bridge/deadLetters/{id}", Operate, "Done with it: it goes out of sight", delete(letters::delete)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:replay", Operate, "Sends it again, as a new delivery", post(letters::act)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:edit", Operate, "Sends a changed copy of it, or shows what that would be", post(letters::act)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:park", Operate, "Puts it aside: no replay of many takes it", post(letters::act)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:unpark", Operate, "It is open again", post(letters::act)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:restore", Operate, "It was deleted, and is back", post(letters::act)),
        route(POST, "/api/v1/bridge/deadLetters/{id}:purge", Admin, "It goes for good, with its evidence", post(letters::act)),
        route(GET, "/api/v1/bridge/deadLetterGroups", Read, "Dead letters by what they have in common", get(groups::list)),
        route(GET, "/api/v1/bridge/deadLetterGroups/{fingerprint}", Read, "A group, with one of its dead letters", get(groups::get)),
        route(PATCH, "/api/v1/bridge/deadLetterGroups/{fingerprint}", Operate, "Writes a note about it", patch(groups::change)),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:replay", Operate, "Sends all of it again, first a few and then the rest", post(groups::act)),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:acknowledge", Operate, "Somebody is at it", post(groups::act)),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:resolve", Operate, "Done with it, until one more fails alike", post(groups::act)),
        route(POST, "/api/v1/bridge/deadLetterGroups/{fingerprint}:reopen", Operate, "Not done with it after all", post(groups::act)),
    ]
}

#[rustfmt::skip]
fn ops() -> Vec<Route> {
    use Scope::{Admin, Operate, Read};
    vec![
        route(GET, "/api/v1/ops/operations", Read, "Work on many dead letters, the newest first", get(operations::list)),
        route(GET, "/api/v1/ops/operations/{id}", Read, "Such work: how far it is, and what it waits for", get(operations::get)),
        route(POST, "/api/v1/ops/operations/{id}:pause", Operate, "Nothing more begins", post(operations::act)),
        route(POST, "/api/v1/ops/operations/{id}:resume", Operate, "It goes on; what a canary has stopped goes on without one", post(operations::act)),
        route(POST, "/api/v1/ops/operations/{id}:cancel", Operate, "It ends; what has begun goes on by itself", post(operations::act)),
        route(GET, "/api/v1/ops/overview", Read, "How things stand, and what needs a person", get(ops::overview)),
        route(GET, "/api/v1/ops/services", Read, "How each service stands", get(ops::services)),
        route(GET, "/api/v1/ops/history", Read, "What happened lately, in points over time", get(ops::history)),
        route(POST, "/api/v1/ops/secrets:rotate", Admin, "Seals all secrets with a new key", post(secrets::rotate)),
        route(GET, "/api/v1/ops/alerts", Read, "Incidents, the newest first", get(alerts::list)),
        route(GET, "/api/v1/ops/alerts/{id}", Read, "An incident, with who was told", get(alerts::get)),
        route(POST, "/api/v1/ops/alerts/{id}:acknowledge", Operate, "Somebody has seen it", post(alerts::act)),
        route(POST, "/api/v1/ops/alerts/{id}:mute", Operate, "Nobody is told about it for a while", post(alerts::act)),
        route(POST, "/api/v1/ops/alerts/{id}:unmute", Operate, "People are told about it again", post(alerts::act)),
        route(GET, "/api/v1/ops/alertRules", Read, "All rules of alerts", get(alert_rules::list)),
        route(GET, "/api/v1/ops/alertRules/{name}", Read, "A rule of alerts", get(alert_rules::get)),
        route(PUT, "/api/v1/ops/alertRules/{name}", Admin, "Replaces a rule of alerts, or makes one", put(alert_rules::replace)),
        route(PATCH, "/api/v1/ops/alertRules/{name}", Admin, "Changes the fields that are named", patch(alert_rules::change)),
        route(DELETE, "/api/v1/ops/alertRules/{name}", Admin, "Deletes a rule of alerts; one that came with the hub is as it came", delete(alert_rules::delete)),
        route(POST, "/api/v1/ops/alertRules/{name}:mute", Operate, "Nobody is told by it for a while", post(alert_rules::act)),
        route(POST, "/api/v1/ops/alertRules/{name}:unmute", Operate, "People are told by it again", post(alert_rules::act)),
        route(GET, "/api/v1/ops/alertChannels", Read, "All channels of alerts", get(alert_channels::list)),
        route(GET, "/api/v1/ops/alertChannels/{name}", Read, "A channel of alerts", get(alert_channels::get)),
        route(PUT, "/api/v1/ops/alertChannels/{name}", Admin, "Replaces a channel of alerts, or makes one", put(alert_channels::replace)),
        route(PATCH, "/api/v1/ops/alertChannels/{name}", Admin, "Changes the fields that are named", patch(alert_channels::change)),
        route(DELETE, "/api/v1/ops/alertChannels/{name}", Admin, "Deletes a channel of alerts", delete(alert_channels::delete)),
        route(POST, "/api/v1/ops/alertChannels/{name}:test", Operate, "Sends a sample, and says what came of it", post(alert_channels::act)),
        route(GET, "/api/v1/ops/audit", Admin, "Who has changed what, the newest first", get(audit::list)),
    ]
}

/// The metrics. They name all services, so they need a key, unless `--metrics open` says that everybody may read them.
#[rustfmt::skip]
fn metrics() -> Vec<Route> {
    use Scope::Read;
    vec![
        route(GET, "/actuator/metrics", Read, "The names of all metrics", get(metrics::names)),
        route(GET, "/actuator/metrics/{name}", Read, "A metric", get(metrics::one)),
        route(GET, "/metrics", Read, "All metrics, for Prometheus", get(metrics::prometheus)),
    ]
}

/// Whether a route shows metrics.
pub(super) fn is_for_metrics(matched: &str) -> bool {
    matched == "/metrics" || matched.starts_with("/actuator/metrics")
}

/// The routes that only the hub of a demo has. They are no part of the API, and not in its description.
fn demo_routes() -> Vec<Route> {
    use Scope::{Operate, Read};
    let (upstreams, set) = ("/api/v1/demo/upstreams", "/api/v1/demo/upstreams/{name}:set");
    vec![
        route(Method::GET, upstreams, Read, "The sample services and their moods", get(demo::list)),
        route(Method::POST, set, Operate, "Breaks a sample service, or heals it", post(demo::act)),
        route(Method::GET, "/api/v1/demo/story", Read, "What has been told so far", get(demo::story)),
    ]
}

/// A route that anybody may use.
pub(crate) struct Open {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// What it does, in one line.
    pub(crate) about: &'static str,
    handler: MethodRouter<Arc<Hub>>,
}

/// All routes for which no key is needed.
#[rustfmt::skip]
pub(crate) fn open() -> Vec<Open> {
    let get = |path, about, handler| Open { method: Method::GET, path, about, handler };
    let post = |path, about, handler| Open { method: Method::POST, path, about, handler };
    use axum::routing;
    vec![
        get("/actuator/health", "How the hub is, and which circuits are not closed", routing::get(actuator::health)),
        get("/actuator/health/liveness", "Whether the process is worth keeping", routing::get(actuator::liveness)),
        get("/actuator/health/readiness", "Whether it can take work", routing::get(actuator::readiness)),
        get("/openapi.json", "This description", routing::get(openapi::openapi)),
        get("/docs", "This description, to read and to try", routing::get(openapi::docs)),
        post("/in/{source}", "Accepts a webhook", routing::post(sources::webhook)),
    ]
}

/// The router of those.
pub(super) fn open_router() -> Router<Arc<Hub>> {
    open().into_iter().fold(Router::new(), |router, Open { path, handler, .. }| router.route(path, handler))
}

/// All routes, to be looked up.
pub(super) struct Table {
    scopes: HashMap<(Method, String), Scope>,
    /// The methods of each path.
    methods: HashMap<String, Vec<Method>>,
}

impl Table {
    /// What a key must be allowed to do. `matched` is the route without its verb, `path` what was asked for. What is not in
    /// the table needs everything. Whoever may read something may ask for its head.
    pub(super) fn scope(&self, method: &Method, matched: &str, path: &str) -> Scope {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let of = |path: String| self.scopes.get(&(method.clone(), path)).copied();
        let verb =
            (*method == Method::POST && matched.ends_with('}')).then(|| path.rsplit_once(':')).flatten();
        let found = match verb {
            Some((_, verb)) => of(format!("{matched}:{verb}")),
            None => of(matched.to_owned()),
        };
        found.unwrap_or(Scope::Admin)
    }

    /// The verb of a path that leads nowhere, and those that there are beside it; nothing, if there are none.
    pub(super) fn verbs(&self, path: &str) -> Option<(String, String)> {
        let (before, verb) = path.rsplit_once(':').filter(|(_, verb)| !verb.contains('/'))?;
        let of = |known: &str| known.strip_prefix(before)?.strip_prefix(':').map(ToOwned::to_owned);
        let mut known: Vec<String> = self.methods.keys().filter_map(|known| of(known)).collect();
        known.sort();
        (!known.is_empty()).then(|| (verb.to_owned(), known.join(", ")))
    }

    /// The methods that there are, if this is none of them. A path with a verb shares its route with the path without it, so
    /// the router can't tell. A verb that nobody knows is for the handler to say.
    pub(super) fn others(&self, method: &Method, matched: &str, path: &str) -> Option<String> {
        let with_verb = matched.ends_with('}').then(|| path.rsplit_once(':')).flatten();
        let with_verb = with_verb.map(|(_, verb)| self.methods.get(&format!("{matched}:{verb}")));
        let methods = match with_verb {
            Some(Some(methods)) => methods,
            Some(None) if *method == Method::POST => return None,
            _ => self.methods.get(matched)?,
        };
        let asked = if *method == Method::HEAD { &Method::GET } else { method };
        let allowed = methods.contains(asked);
        (!allowed).then(|| {
            let head = methods.contains(&Method::GET).then_some("HEAD");
            methods.iter().map(Method::as_str).chain(head).collect::<Vec<_>>().join(", ")
        })
    }
}

/// The router of the table, and the table to look into; with the routes of a demo, if it is one.
pub(super) fn router(is_demo: bool) -> (Router<Arc<Hub>>, Table) {
    let (mut router, mut seen, mut scopes) = (Router::new(), HashSet::new(), HashMap::new());
    let mut methods: HashMap<String, Vec<Method>> = HashMap::new();
    let all = routes().into_iter().chain(if is_demo { demo_routes() } else { Vec::new() });
    for Route { method, path, scope, handler, .. } in all {
        let plain = without_verb(path);
        scopes.insert((method.clone(), path.to_owned()), scope);
        methods.entry(path.to_owned()).or_default().push(method.clone());
        // Verbs of one resource share a handler, which takes them apart.
        if seen.insert((method, plain.clone())) {
            router = router.route(&plain, handler);
        }
    }
    (router, Table { scopes, methods })
}

/// A path as the router knows it: it can't have a verb behind a parameter.
fn without_verb(path: &str) -> String {
    match path.rsplit_once("}:") {
        Some((before, _)) => format!("{before}}}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-1: a route asks for its own scope, one with a verb for that of the verb, and one that nobody knows for everything.
    #[test]
    fn sec_1_every_route_asks_for_its_scope() {
        let (_, table) = router(false);
        let scope = |method: Method, matched: &str, path: &str| table.scope(&method, matched, path);
        let service = "/api/v1/registry/services/{name}";
        assert_eq!(scope(Method::GET, service, "/api/v1/registry/services/billing"), Scope::Read);
        assert_eq!(scope(Method::HEAD, service, "/api/v1/registry/services/billing"), Scope::Read);
        assert_eq!(scope(Method::HEAD, "/api/v1/ops/audit", "/api/v1/ops/audit"), Scope::Admin);
        assert_eq!(scope(Method::PUT, service, "/api/v1/registry/services/billing"), Scope::Admin);
        assert_eq!(scope(Method::POST, service, "/api/v1/registry/services/billing:pause"), Scope::Operate);
        assert_eq!(scope(Method::POST, service, "/api/v1/registry/services/billing:nope"), Scope::Admin);
        assert_eq!(scope(Method::POST, "/api/v1/bridge/events", "/api/v1/bridge/events"), Scope::Ingest);
        assert_eq!(scope(Method::POST, "", "/nowhere"), Scope::Admin);
        let others = |method: Method, path: &str| table.others(&method, service, path);
        assert_eq!(others(Method::POST, "/api/v1/registry/services/billing:pause"), None);
        assert_eq!(others(Method::POST, "/api/v1/registry/services/billing:nope"), None);
        assert_eq!(others(Method::HEAD, "/api/v1/registry/services/billing"), None);
        assert_eq!(others(Method::PUT, "/api/v1/registry/services/billing:pause").as_deref(), Some("POST"));
        let all = others(Method::POST, "/api/v1/registry/services/billing");
        assert_eq!(all.as_deref(), Some("GET, PUT, PATCH, DELETE, HEAD"));
        let unknown = table.verbs("/api/v1/bridge/deadLetters:relpay").map(|(_, known)| known);
        assert_eq!(unknown.as_deref(), Some("delete, export, park, purge, replay, restore, unpark"));
        assert_eq!(table.verbs("/api/v1/bridge/deliveries:relpay"), None);
        for Route { path, about, .. } in routes() {
            assert!(path.starts_with("/api/v1/") || is_for_metrics(path), "{path}");
            assert!(!about.is_empty() && !about.ends_with('.'), "{path}");
        }
    }
}
