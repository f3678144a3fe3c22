//! The API: handlers translate and authorise, and nothing else.

mod events;
mod fields;
mod registry;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::fields::FieldProblem;
use crate::hub::Hub;

/// No request is larger.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The API of a hub, for whoever has this key.
pub fn api(hub: Arc<Hub>, admin_key: &str) -> Router {
    let key: [u8; 32] = Sha256::digest(admin_key.as_bytes()).into();
    let guarded = Router::new()
        .route("/api/v1/registry/services", post(registry::put_service).get(registry::services))
        .route("/api/v1/registry/rules", post(registry::put_rule).get(registry::rules))
        .route("/api/v1/bridge/events", post(events::accept))
        .route("/api/v1/bridge/events/{id}", get(events::event))
        .route("/api/v1/bridge/deliveries/{id}", get(events::delivery))
        .layer(middleware::from_fn_with_state(Arc::new(key), authorise));
    Router::new()
        .route("/actuator/health", get(health))
        .merge(guarded)
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "notFound", "there is nothing at this path", false)
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(hub)
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
    let known = given.is_some_and(|given| <[u8; 32]>::from(Sha256::digest(given.as_bytes())) == *key);
    if known {
        return next.run(request).await;
    }
    let word = "a key is needed: `Authorization: Bearer KEY`; the admin key is `SEAWALL_ADMIN_KEY`, or was printed at the start";
    problem(StatusCode::UNAUTHORIZED, "unauthorised", word, false)
}

async fn health(State(hub): State<Arc<Hub>>) -> Response {
    let open: Vec<Value> =
        hub.troubled().into_iter().map(|(name, state)| json!({"service": name, "circuit": state})).collect();
    success(StatusCode::OK, &json!({"state": "up", "circuitsNotClosed": open}))
}

/// One envelope for everything that went well.
fn success(status: StatusCode, data: &Value) -> Response {
    let word = if status == StatusCode::ACCEPTED { "accepted" } else { "ok" };
    answer(status, &json!({"status": word, "data": data}))
}

/// And one for what did not.
fn problem(status: StatusCode, code: &str, message: &str, retryable: bool) -> Response {
    answer(status, &json!({"status": "error", "code": code, "message": message, "retryable": retryable}))
}

fn wrong_fields(problems: &[FieldProblem]) -> Response {
    let errors: Vec<Value> =
        problems.iter().map(|problem| json!({"field": problem.field, "reason": problem.reason})).collect();
    let message = "some fields are wrong; `errors` says which and why";
    answer(
        StatusCode::UNPROCESSABLE_ENTITY,
        &json!({"status": "error", "code": "invalid", "message": message, "retryable": false, "errors": errors}),
    )
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// The JSON of a request.
fn parse(bytes: &Bytes) -> Result<Value, Box<Response>> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("the body is no JSON: {error}");
        Box::new(problem(StatusCode::BAD_REQUEST, "notJson", &message, false))
    })
}
