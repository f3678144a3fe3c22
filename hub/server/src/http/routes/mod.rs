//! Every route, in one table: its scope, its summary, what it takes and returns, and its handler.
//!
//! The router, the check of scopes and the description of the API are made of this table, so none of them can forget a route.

mod bridge;
mod dead_letters;
mod ops;
mod registry;
mod row;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use tower_service::Service;

pub(crate) use self::row::Route;
pub(crate) use self::row::SuccessResponse;
use super::access::RouteTable;
use super::context::VerbLength;
use super::{nothing_here, unknown_action};
use crate::hub::Server;

/// All routes for which a key is needed.
pub(crate) fn routes() -> Vec<Route> {
    let parts = [registry::routes(), bridge::routes(), dead_letters::routes(), ops::routes(), ops::metrics()];
    parts.into_iter().flatten().collect()
}

/// Whether a route shows metrics.
pub(super) fn is_for_metrics(matched: &str) -> bool {
    matched == "/metrics" || matched.starts_with("/actuator/metrics")
}

/// All routes for which no key is needed.
pub(crate) fn open() -> Vec<Route> {
    ops::public()
}

/// The router of those.
pub(super) fn open_router() -> Router<Arc<Server>> {
    open().into_iter().fold(Router::new(), |router, Route { path, handler, .. }| router.route(path, handler))
}

/// The router of the table, and the table to look into; with the routes of a demo, if it is one.
pub(super) fn router(hub: &Arc<Server>) -> (Router<Arc<Server>>, RouteTable) {
    let (mut router, mut actions) = (Router::new(), BTreeMap::<String, Actions>::new());
    let all = || routes().into_iter().chain(hub.demo().map(|_| ops::demo()).unwrap_or_default());
    for Route { path, handler, .. } in all() {
        match path.rsplit_once("}:") {
            // The router can't tell verbs behind a parameter apart.
            Some((before, verb)) => {
                let actions = actions.entry(format!("{before}}}")).or_default();
                actions.push((verb, handler.with_state(hub.clone())));
            }
            None => router = router.route(path, handler),
        }
    }
    for (path, actions) in actions {
        let actions = Arc::new(actions);
        router = router.route(&path, post(move |request: Request| act(actions.clone(), request)));
    }
    (router, table(all()))
}

/// The actions on one kind of object, each with its verb.
type Actions = Vec<(&'static str, MethodRouter)>;

/// Hands a request to the action that its path names: `POST …/services/{name}:pause`.
async fn act(actions: Arc<Actions>, mut request: Request) -> Response {
    let Some((_, verb)) = request.uri().path().rsplit_once(':') else {
        return nothing_here().into_response();
    };
    let Some((verb, action)) = actions.iter().find(|(known, _)| *known == verb) else {
        let known: Vec<&str> = actions.iter().map(|(verb, _)| *verb).collect();
        return unknown_action(verb, &known.join(", ")).into_response();
    };
    request.extensions_mut().insert(VerbLength(verb.len()));
    let Ok(mut response) = action.clone().call(request).await;
    // It counts the body as it is now, and the envelope is still open.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// The scopes and the methods of these routes.
fn table(routes: impl Iterator<Item = Route>) -> RouteTable {
    let (mut scopes, mut methods) = (HashMap::new(), HashMap::<String, Vec<Method>>::new());
    for Route { method, path, scope, .. } in routes {
        scopes.extend(scope.map(|scope| ((method.clone(), path.to_owned()), scope)));
        methods.entry(path.to_owned()).or_default().push(method);
    }
    RouteTable { scopes, methods }
}

#[cfg(test)]
mod tests {
    use seawall_hub_core::domain::key::Scope;

    use super::*;

    /// SEC-1: a route asks for its own scope, one with a verb for that of the verb, and one that nobody knows for everything.
    #[test]
    fn sec_1_every_route_asks_for_its_scope() {
        let table = table(routes().into_iter());
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
