//! The API: handlers translate and authorise, and nothing else.

mod actuator;
mod deliveries;
mod evaluate;
mod events;
pub(crate) mod fields;
mod gateway;
mod query;
mod reply;
mod rules;
mod services;
mod shallow;
mod sources;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

use self::reply::{TRACE, problem};
use crate::gateway::Refusal;
use crate::hub::Hub;

/// No request is larger.
const BODY_BYTES_MAX: usize = 1024 * 1024;

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

/// The API of a hub, for whoever has the key with this hash.
pub fn api(hub: Arc<Hub>, admin_key: [u8; 32]) -> Router {
    let guarded = Router::new()
        .route("/api/v1/registry/services", post(services::put).get(services::list))
        .route(
            "/api/v1/registry/services/{name}",
            get(services::get)
                .put(services::replace)
                .patch(services::change)
                .delete(services::delete)
                .post(services::act),
        )
        .route("/api/v1/registry/services/{name}/circuit", get(services::circuit))
        .route("/api/v1/registry/services/{name}/{verb}", post(services::move_circuit))
        .route("/api/v1/registry/rules", post(rules::put).get(rules::list))
        .route("/api/v1/registry/rules:evaluate", post(evaluate::evaluate))
        .route(
            "/api/v1/registry/rules/{name}",
            get(rules::get).put(rules::replace).patch(rules::change).delete(rules::delete).post(rules::act),
        )
        .route("/api/v1/registry/rules/{name}/versions", get(rules::versions))
        .route("/api/v1/registry/sources", post(sources::put).get(sources::list))
        .route(
            "/api/v1/registry/sources/{name}",
            get(sources::get).put(sources::replace).delete(sources::delete),
        )
        .route("/api/v1/gateway/services/{name}", post(gateway::act))
        .route("/api/v1/bridge/events", post(events::accept).get(events::list))
        .route("/api/v1/bridge/events:batchCreate", post(events::accept_batch))
        .route("/api/v1/bridge/events/{id}", get(events::get))
        .route("/api/v1/bridge/deliveries", get(deliveries::list))
        .route("/api/v1/bridge/deliveries/{id}", get(deliveries::get))
        .route("/api/v1/bridge/deadLetters", get(deliveries::list_dead))
        .route(
            "/api/v1/bridge/deadLetters/{id}",
            get(deliveries::get_dead).delete(deliveries::discard).post(deliveries::act),
        )
        .layer(middleware::from_fn_with_state(Arc::new(admin_key), authorise));
    Router::new()
        .route("/actuator/health", get(actuator::health))
        .route("/actuator/health/liveness", get(actuator::liveness))
        .route("/actuator/health/readiness", get(actuator::readiness))
        .route("/in/{source}", post(sources::webhook))
        .merge(guarded)
        .fallback(|| async { nothing_here() })
        .method_not_allowed_fallback(|| async {
            let word = "there is something at this path, but not for this method";
            problem(StatusCode::METHOD_NOT_ALLOWED, "wrongMethod", word, false)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn(traced))
        .with_state(hub)
}

/// The hash of a key: what is kept of it, and compared.
#[must_use]
pub fn key_hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Compared as hashes, so that the time it takes says nothing about the key.
async fn authorise(
    State(key): State<Arc<[u8; 32]>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let given =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if given.is_some_and(|given| key_hash(given) == *key) {
        return next.run(request).await;
    }
    let word = "a key is needed: `Authorization: Bearer KEY`; the admin key is `SEAWALL_ADMIN_KEY`, or was printed at the \
                first start";
    problem(StatusCode::UNAUTHORIZED, "unauthorised", word, false)
}

/// Every request belongs to a trace: the one that it says, or a new one.
async fn traced(request: Request, next: Next) -> Response {
    TRACE.scope(trace_id(request.headers()), next.run(request)).await
}

fn trace_id(headers: &HeaderMap) -> String {
    let said = headers.get("traceparent").and_then(|value| value.to_str().ok());
    match said.filter(|text| is_traceparent(text)) {
        Some(text) => text[3..35].to_owned(),
        None => random_hex::<16>(),
    }
}

/// `00-<32 digits>-<16 digits>-<2 digits>`, neither id all zeros.
fn is_traceparent(text: &str) -> bool {
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

fn fresh_event_id() -> String {
    format!("evt_{}", random_hex::<16>())
}

fn random_hex<const N: usize>() -> String {
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

fn no_verb(verb: &str, known: &str) -> Response {
    let word = format!("there is no `:{verb}` here; there are {known}");
    problem(StatusCode::NOT_FOUND, "noSuchAction", &word, false)
}
