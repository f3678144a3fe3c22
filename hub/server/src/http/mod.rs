//! The API: handlers translate and authorise, and nothing else.

pub(crate) mod access;
mod actuator;
mod alert_channels;
mod alert_rules;
mod alerts;
mod attention;
mod audit;
mod call_response;
mod circuits;
mod deliveries;
mod demo;
mod desk;
mod evaluate;
mod events;
pub(crate) mod fields;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod gateway;
mod keys;
mod metrics;
pub(crate) mod openapi;
mod ops;
pub(crate) mod query;
mod reply;
pub(crate) mod routes;
mod rules;
mod secrets;
mod services;
mod shallow;
mod sources;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use ring::rand::{SecureRandom, SystemRandom};

pub use self::access::key_hash;
pub use self::keys::fresh_key;
use self::reply::{TRACE, enveloped, problem};
use crate::gateway::Refusal;
use crate::hub::Hub;

/// No request is larger.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Whoever does not read is cut off soon, and then there is memory again.
const MEMORY_RETRY_SECONDS: &str = "5";

/// An answer, or one that came early.
type Caught = Result<Response, Early>;

/// An answer that came before the handler was done.
struct Early(Response);

impl From<Box<Response>> for Early {
    fn from(response: Box<Response>) -> Self {
        Early(*response)
    }
}

impl From<Response> for Early {
    fn from(response: Response) -> Self {
        Early(response)
    }
}

impl IntoResponse for Early {
    fn into_response(self) -> Response {
        self.0
    }
}

/// The API of a hub.
pub fn api(hub: Arc<Hub>) -> Router {
    let (guarded, table) = routes::router(hub.demo().is_some());
    let table = Arc::new(table);
    let unknown = table.clone();
    let guarded = guarded.layer(middleware::from_fn_with_state((hub.clone(), table.clone()), access::guard));
    routes::open_router()
        .merge(guarded)
        .fallback(move |request: Request| {
            let verbs = unknown.verbs(request.uri().path());
            async move { verbs.map_or_else(nothing_here, |(verb, known)| no_verb(&verb, &known)) }
        })
        .method_not_allowed_fallback(move |request: Request| {
            let matched = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
            let others = table.others(request.method(), matched, request.uri().path());
            async move { others.map_or_else(no_such_method, |others| wrong_method(&others)) }
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(traced))
        .layer(middleware::from_fn(to_the_end))
        .with_state(hub)
}

/// What changes something is done to its end, also if whoever asked has gone away in the middle: a unit that is written while
/// nobody waits for it any more would have deliveries in nobody's hand, and another registry in memory than on the disk.
async fn to_the_end(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    #[expect(clippy::disallowed_methods, reason = "it is waited for, and must outlive who waits")]
    let done = tokio::spawn(next.run(request)).await;
    done.unwrap_or_else(|_| {
        let word = "the hub could not answer; this is a mistake in it";
        problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", word, false)
    })
}

/// Every request belongs to a trace: the one that it says, or a new one.
async fn traced(request: Request, next: Next) -> Response {
    let trace = trace_id(request.headers());
    let seen = watch::Seen::new(&request, &trace);
    let response = TRACE.scope(trace, async { enveloped(next.run(request).await) }).await;
    seen.answered(&response);
    response
}

fn trace_id(headers: &HeaderMap) -> String {
    let said = headers.get("traceparent").and_then(|value| value.to_str().ok());
    match said.filter(|text| is_traceparent(text)) {
        Some(text) => text[3..35].to_owned(),
        None => random_hex::<16>(),
    }
}

/// `00-<32 digits>-<16 digits>-<2 digits>`, neither id all zeros.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, length| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match parts[..] {
        [version, trace, span, flags] => {
            version == "00"
                && hex(trace, 32)
                && hex(span, 16)
                && hex(flags, 2)
                && trace.bytes().any(|byte| byte != b'0')
                && span.bytes().any(|byte| byte != b'0')
        }
        _ => false,
    }
}

/// The answer to a request that is refused before the API sees it.
pub(crate) fn refused(headers: &HeaderMap, refusal: &Refusal) -> Response {
    TRACE.sync_scope(trace_id(headers), || gateway::refused(refusal, &serde_json::Value::Null))
}

/// The answer to a request for whose response there is no memory left.
pub(crate) fn memory_full() -> Response {
    let word = "the hub holds as many bytes of responses as it may: clients do not read theirs; ask again, or raise \
                `--response-memory`";
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "memoryFull", word, true);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(MEMORY_RETRY_SECONDS));
    response
}

/// A name for an event that has none, by chance.
#[must_use]
pub fn fresh_event_id() -> String {
    format!("evt_{}", random_hex::<16>())
}

pub(crate) fn random_hex<const N: usize>() -> String {
    let mut bytes = [0_u8; N];
    // Without randomness nothing else of the hub would run: keys are drawn from it at the start.
    let _ = SystemRandom::new().fill(&mut bytes);
    hex(&bytes)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `{id}:{verb}`.
fn split_verb(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(':')
}

fn nothing_here() -> Response {
    problem(StatusCode::NOT_FOUND, "notFound", "there is nothing at this path", false)
}

fn no_such_method() -> Response {
    let word = "there is something at this path, but not for this method";
    problem(StatusCode::METHOD_NOT_ALLOWED, "wrongMethod", word, false)
}

/// The same, with those that there are. Said here, the router leaves it as it is.
fn wrong_method(others: &str) -> Response {
    let mut response = no_such_method();
    if let Ok(others) = HeaderValue::try_from(others) {
        response.headers_mut().insert(header::ALLOW, others);
    }
    response
}

fn no_verb(verb: &str, known: &str) -> Response {
    let word = format!("there is no `:{verb}` here; there are {known}");
    problem(StatusCode::NOT_FOUND, "noSuchAction", &word, false)
}

#[cfg(test)]
mod tests;
