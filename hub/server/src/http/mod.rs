//! The API: handlers translate and authorise, and nothing else.

pub(crate) mod access;
mod alerts;
mod bridge;
pub(crate) mod context;
mod dead_letters;
mod error;
pub(crate) mod fields;
mod formats;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod gateway;
mod health;
mod input;
mod once;
pub(crate) mod openapi;
mod ops;
pub(crate) mod query;
mod raw;
mod reader;
mod registry;
mod reply;
pub(crate) mod routes;
pub(crate) mod shape;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use ring::rand::{SecureRandom, SystemRandom};
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::encode::hex;

pub(crate) use self::access::UNKNOWN_KEY;
pub use self::access::key_hash;
use self::error::ApiError;
pub use self::registry::keys::fresh_key;
use self::reply::completed;
pub(crate) use self::watch::RequestTelemetry;
use crate::gateway::GatewayRefusal;
use crate::hub::Server;

/// No request is larger.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The `Retry-After` while response memory is full. A client that does not read is cut off soon, and then there is memory again.
const MEMORY_RETRY_SECONDS: &str = "5";

/// The API of a hub.
pub fn api(hub: Arc<Server>) -> Router {
    let (guarded, table) = routes::router(&hub);
    let table = Arc::new(table);
    let unknown = table.clone();
    let guarded = guarded.layer(middleware::from_fn_with_state((hub.clone(), table.clone()), access::guard));
    routes::open_router()
        .merge(guarded)
        .fallback(move |request: Request| {
            let verbs = unknown.verbs(request.uri().path());
            async move { verbs.map_or_else(nothing_here, |(verb, known)| unknown_action(&verb, &known)) }
        })
        .method_not_allowed_fallback(move |request: Request| {
            let matched = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
            let others = table.others(request.method(), matched, request.uri().path());
            async move { others.map_or_else(no_such_method, |others| wrong_method(&others)) }
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(hub.clone(), outermost))
        .with_state(hub)
}

/// Runs a request in its trace: the one that it names, or a new one. What changes something is done to its end, also if the
/// client has gone away in the middle: a unit that is written while nobody waits for it any more would have deliveries that
/// nobody sends, and another registry in memory than on the disk.
async fn outermost(State(hub): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let trace = trace_id(request.headers());
    request.extensions_mut().insert(trace);
    if request.method().is_safe() {
        return answered(hub, trace, request, next).await;
    }
    #[expect(clippy::disallowed_methods, reason = "it is waited for, and must outlive who waits")]
    let done = tokio::spawn(answered(hub, trace, request, next)).await;
    done.unwrap_or_else(|_| completed(ApiError::internal().into_response(), Some(trace)))
}

/// Answers a request with a complete envelope, and logs what could not be served.
async fn answered(hub: Arc<Server>, trace: TraceId, request: Request, next: Next) -> Response {
    let log = watch::RequestLog::new(&request, trace, &hub.request_telemetry);
    let response = completed(next.run(request).await, Some(trace));
    log.answered(&response, &hub.request_telemetry);
    response
}

/// Returns the trace that a request names, or a new one.
fn trace_id(headers: &HeaderMap) -> TraceId {
    let said = headers.get("traceparent").and_then(|value| value.to_str().ok());
    said.and_then(TraceId::of).unwrap_or_else(fresh_trace)
}

/// Returns a new trace.
pub(crate) fn fresh_trace() -> TraceId {
    TraceId::fresh(u128::from_be_bytes(random_bytes()))
}

/// The answer to a request that is refused before the API sees it.
pub(crate) fn refused(headers: &HeaderMap, refusal: &GatewayRefusal) -> Response {
    completed(ApiError::of_call(refusal, None).into_response(), Some(trace_id(headers)))
}

/// The answer to a request for whose response there is no memory left, after the API has made it.
pub(crate) fn no_memory_left() -> Response {
    completed(memory_full().into_response(), None)
}

/// The answer to a request for whose response there is no memory left.
fn memory_full() -> ApiError {
    let word = "the hub holds as many bytes of responses as it may: clients do not read theirs; ask again, or raise \
                `--response-memory`";
    ApiError::new("memoryFull", word).retry_after(MEMORY_RETRY_SECONDS)
}

/// A name for an event that has none, by chance.
#[must_use]
pub(crate) fn fresh_event_id() -> String {
    format!("evt_{}", random_hex::<16>())
}

pub(crate) fn random_hex<const N: usize>() -> String {
    hex(&random_bytes::<N>())
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0_u8; N];
    // Without randomness nothing else of the hub would run: keys are drawn from it at the start.
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}

fn nothing_here() -> ApiError {
    ApiError::new("notFound", "path not found")
}

fn no_such_method() -> ApiError {
    ApiError::new("wrongMethod", "the path does not support this method")
}

/// The same, with those that there are. Said here, the router leaves it as it is.
fn wrong_method(others: &str) -> ApiError {
    no_such_method().with_header(header::ALLOW, others)
}

fn unknown_action(verb: &str, known: &str) -> ApiError {
    ApiError::new("noSuchAction", format!("unknown action `:{verb}`. Known: {known}"))
}

#[cfg(test)]
mod tests;
