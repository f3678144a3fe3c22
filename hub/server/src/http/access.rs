//! Who may do what: keys, their scopes, and what they are limited to.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use seawall_hub_core::domain::dead_letter::Visibility;
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoredDelivery;
use sha2::{Digest, Sha256};

use super::context::RequestContext;
use super::error::ApiError;
use super::routes;
use crate::hub::Server;

/// Why whoever changes something does it: kept in the audit log.
pub(crate) const REASON: &str = "x-seawall-reason";
const REASON_MAX: usize = 500;
/// The source of an event that names none.
pub(super) const UNNAMED: &str = "api";

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Key>);

impl Caller {
    /// Somebody whose key was looked up already: only within the process can a request say so.
    pub(crate) fn of(key: Arc<Key>) -> Self {
        Caller(key)
    }

    /// Whether it is for this service. What is not looks as if it were not there.
    pub(super) fn sees(&self, service: &Slug) -> bool {
        self.0.sees(service)
    }

    /// Whether it may do everything.
    pub(super) fn is_admin(&self) -> bool {
        self.0.scopes.allow(Scope::Admin)
    }

    /// What it may see of dead letters.
    pub(super) fn within(&self) -> Visibility {
        Visibility { services: self.0.services.clone(), sources: self.0.sources.clone() }
    }

    /// The name of its key.
    pub(super) fn name(&self) -> &Slug {
        &self.0.name
    }

    /// The services that it is for; all, if it is none.
    pub(super) fn services(&self) -> Option<Vec<Slug>> {
        self.0.services.clone()
    }

    /// Whether it is for all services.
    pub(super) fn sees_all(&self) -> bool {
        self.0.services.is_none()
    }

    /// Whether a delivery is for it to see: its service is, and so is where its event comes from.
    pub(super) fn sees_delivery(&self, kept: &StoredDelivery) -> bool {
        self.0.sees(&kept.service) && self.0.may_send_from(&kept.source)
    }

    /// The sources that it is for, if not for all.
    pub(super) fn sources(&self) -> Option<Vec<String>> {
        self.0.sources.clone()
    }

    /// Whether it is for this source. What is not looks as if it were not there.
    pub(super) fn sees_source(&self, source: &str) -> bool {
        self.0.may_send_from(source)
    }

    /// What it calls something, so that others may call something else the same. Its own name stays when it is rotated, and has no
    /// space in it.
    pub(super) fn own(&self, name: &str) -> String {
        format!("{} {name}", self.0.name)
    }

    /// Returns the answer to an event from a source that is not for this key.
    pub(super) fn source_refused(&self, source: &str) -> ApiError {
        let mut word = format!("this key may not send events from the source `{source}`");
        if let Some(own) =
            self.0.sources.as_ref().and_then(|sources| sources.first()).filter(|_| source == UNNAMED)
        {
            word = format!(
                "this key may send events from {} only, and an event that says no `source` comes from `{UNNAMED}`; \
                 add `\"source\": \"{own}\"`",
                self.0
                    .sources
                    .iter()
                    .flatten()
                    .map(|known| format!("`{known}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        ApiError::new("forbidden", word)
    }
}

/// All routes, to be looked up.
pub(super) struct RouteTable {
    pub(super) scopes: HashMap<(Method, String), Scope>,
    /// The methods of each path.
    pub(super) methods: HashMap<String, Vec<Method>>,
}

impl RouteTable {
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

/// The message for a key that the hub does not accept.
pub(crate) const UNKNOWN_KEY: &str =
    "unknown key: it is wrong, was revoked, has expired or belongs to another hub";

/// The hash of a key: what is kept of it, and compared.
#[must_use]
pub fn key_hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Returns the key that was given, if it is valid. It is found by its hash, so that the time it takes says nothing about it.
fn authenticated(hub: &Server, given: Option<&str>) -> Result<Arc<Key>, ApiError> {
    let found = given.and_then(|given| hub.registry.key_with(&key_hash(given)));
    found.ok_or_else(|| {
        let word = match given {
            Some(_) => UNKNOWN_KEY,
            None => {
                "a key is needed: `Authorization: Bearer KEY`; the admin key is `SEAWALL_ADMIN_KEY`, or was printed at the \
                 first start"
            }
        };
        ApiError::new("unauthorised", word)
    })
}

/// The key in `Authorization: Bearer KEY`. The name of the scheme may be written in any case.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

/// Lets through who may do what the route asks for.
pub(super) async fn guard(
    State((hub, table)): State<(Arc<Server>, Arc<RouteTable>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let scope = table.scope(request.method(), matched, request.uri().path());
    // It is used below the check of the key: without a key nobody learns which methods there are.
    let others = table.others(request.method(), matched, request.uri().path());
    if hub.are_metrics_open() && routes::is_for_metrics(matched) {
        return next.run(request).await;
    }
    let key = match request.extensions().get::<Caller>() {
        Some(Caller(key)) => Ok(key.clone()),
        None => authenticated(&hub, bearer(request.headers())),
    };
    let caller = match key {
        Ok(key) if key.scopes.allow(scope) => Caller(key),
        Ok(key) => {
            let (scope, name) = (scope.word(), &key.name);
            let word = format!("this needs the scope `{scope}`, which the key `{name}` does not have");
            return ApiError::new("forbidden", word).into_response();
        }
        Err(refusal) => return refusal.into_response(),
    };
    if routes::is_for_metrics(matched) && !caller.sees_all() {
        let word = "this key is restricted to some services, but metrics cover all of them";
        return ApiError::new("forbidden", word).into_response();
    }
    if let Some(others) = others {
        return super::wrong_method(&others).into_response();
    }
    let reason = request.headers().get(REASON).and_then(|reason| said(reason.as_bytes()));
    let trace = request.extensions().get::<TraceId>().copied();
    // What was accepted and sent may be large, and many may ask for it at once. A few are served at a time.
    let is_large = scope == Scope::Read && matched.starts_with("/api/v1/bridge/");
    request.extensions_mut().insert(RequestContext::new(hub.clone(), caller, reason, trace));
    if !is_large {
        return next.run(request).await;
    }
    if hub.responses.is_full() {
        return super::memory_full().into_response();
    }
    let _turn = hub.responses.turn().await;
    next.run(request).await
}

/// A text that fits into a log, if it is one.
pub(super) fn said(bytes: &[u8]) -> Option<String> {
    let text: String =
        String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(REASON_MAX).collect();
    Some(text).filter(|text| !text.trim().is_empty())
}
