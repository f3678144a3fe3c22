//! Answers: one envelope for everything.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::service::Refused;
use serde_json::{Value, json};

use super::fields::FieldProblem;
use super::openapi::errors::trouble_of;
use super::watch;

tokio::task_local! {
    /// The trace that the request under way belongs to.
    pub(super) static TRACE: String;
}

const JSON: &str = "application/json";

/// The trace that an event belongs to: what it says, or that of the request that brings it. One that begins here is told.
pub(super) fn trace_or_own(said: Option<String>) -> Option<String> {
    said.or_else(|| TRACE.try_with(|own| format!("00-{own}-{}-01", &own[16..])).ok())
}

/// A store that is busy or full is worth another try after so many seconds.
const STORE_RETRY_SECONDS: &str = "1";

/// What went well.
pub(super) fn success(status: StatusCode, data: &Value) -> Response {
    success_text(status, &data.to_string())
}

/// The same, for whoever has the JSON as a text already.
pub(super) fn success_text(status: StatusCode, data: &str) -> Response {
    let word = status_word(status);
    let trace = TRACE.try_with(Clone::clone).unwrap_or_default();
    let body = format!(r#"{{"status":"{word}","data":{data},"message":null,"traceId":"{trace}"}}"#);
    answer(status, body)
}

fn status_word(status: StatusCode) -> &'static str {
    if status == StatusCode::ACCEPTED { "accepted" } else { "ok" }
}

/// What stands before the data of a success, and what behind it.
pub(super) fn envelope(status: StatusCode) -> (String, String) {
    let word = status_word(status);
    let trace = TRACE.try_with(Clone::clone).unwrap_or_default();
    (format!(r#"{{"status":"{word}","data":"#), format!(r#","message":null,"traceId":"{trace}"}}"#))
}

/// With the version of what it shows, for whoever wants to change it.
pub(super) fn versioned(status: StatusCode, version: u64, data: &Value) -> Response {
    let mut response = success(status, data);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// What did not.
pub(super) fn problem(status: StatusCode, code: &str, message: &str, retryable: bool) -> Response {
    failure(status, code, message, retryable, (&json!([]), &Value::Null))
}

/// The same, with what is known all the same.
pub(super) fn problem_about(
    status: StatusCode,
    code: &str,
    message: &str,
    retryable: bool,
    data: &Value,
) -> Response {
    failure(status, code, message, retryable, (&json!([]), data))
}

fn failure(
    status: StatusCode,
    code: &str,
    message: &str,
    retryable: bool,
    (errors, data): (&Value, &Value),
) -> Response {
    debug_assert!(
        trouble_of(status.as_u16(), code).is_some_and(|trouble| trouble.retryable == retryable),
        "`{code}` with {status} is in no list of errors"
    );
    let trace = TRACE.try_with(Clone::clone).unwrap_or_default();
    let body = json!({
        "status": "error", "data": data, "code": code, "message": message, "retryable": retryable, "errors": errors,
        "traceId": trace,
    });
    watch::because(answer(status, body.to_string()), message)
}

/// Some fields are wrong.
pub(super) fn wrong_fields(problems: &[FieldProblem]) -> Response {
    let errors: Vec<Value> =
        problems.iter().map(|problem| json!({"field": problem.field, "reason": problem.reason})).collect();
    let message = "some fields are wrong; `errors` says which and why";
    failure(StatusCode::UNPROCESSABLE_ENTITY, "invalid", message, false, (&Value::from(errors), &Value::Null))
}

pub(super) fn missing(what: &str) -> Response {
    problem(StatusCode::NOT_FOUND, "notFound", &format!("there is no such {what}"), false)
}

/// A change that was not made.
pub(super) fn refused(refused: Refused, what: &str) -> Response {
    match refused {
        Refused::Wrong(problems) => {
            let problem = |(field, reason)| FieldProblem { field, reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        Refused::Missing => missing(what),
        Refused::Conflict(reason) => problem(StatusCode::CONFLICT, "conflict", &reason, false),
        Refused::Busy => {
            let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &refused.to_string(), true);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(STORE_RETRY_SECONDS));
            response
        }
        Refused::Store(error) => store_problem(&error),
    }
}

pub(super) fn store_problem(error: &StoreError) -> Response {
    let (status, code, retryable) = match error {
        StoreError::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale", false),
        StoreError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", true),
        StoreError::Full => (StatusCode::INSUFFICIENT_STORAGE, "full", true),
        StoreError::Damaged(_) => (StatusCode::SERVICE_UNAVAILABLE, "damaged", true),
        StoreError::Fatal(_) => (StatusCode::SERVICE_UNAVAILABLE, "store", true),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "store", true),
    };
    let mut response = problem(status, code, &error.to_string(), retryable);
    if retryable {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(STORE_RETRY_SECONDS));
    }
    response
}

/// What is refused before a handler sees it gets the same envelope as everything else.
pub(super) fn enveloped(response: Response) -> Response {
    let status = response.status();
    let ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    match status {
        _ if ours || !(status.is_client_error() || status.is_server_error()) => response,
        StatusCode::PAYLOAD_TOO_LARGE => {
            problem(status, "tooLarge", "the body is larger than a request may be, which is 1 MiB", false)
        }
        _ if status.is_server_error() => {
            problem(status, "internal", "the hub could not answer; this is a mistake in it", false)
        }
        _ => problem(status, "badRequest", "the request can't be read", false),
    }
}

fn answer(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

/// The JSON of a request.
pub(super) fn parse(bytes: &Bytes) -> Result<Value, Box<Response>> {
    serde_json::from_slice(bytes).map_err(|error| Box::new(not_json(&error)))
}

pub(super) fn not_json(error: &serde_json::Error) -> Response {
    let message = format!("the body is no JSON: {error}");
    problem(StatusCode::BAD_REQUEST, "notJson", &message, false)
}

/// The version that whoever changes something has seen: `If-Match: "3"`, or `If-None-Match: *` for none at all.
pub(super) fn expected(headers: &HeaderMap) -> Result<Option<u64>, Box<Response>> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match text(header::IF_NONE_MATCH) {
        Some("*") => return Ok(Some(0)),
        // Passed over, it would change what whoever sent it did not want changed.
        Some(_) => return Err(Box::new(bad_version("`If-None-Match` is `*`, for what is not there yet"))),
        None => {}
    }
    let Some(tag) = text(header::IF_MATCH).filter(|tag| *tag != "*") else { return Ok(None) };
    tag.trim_matches('"').parse().map(Some).map_err(|_| {
        Box::new(bad_version(&format!("`If-Match: {tag}` is no version; it looks like `If-Match: \"3\"`")))
    })
}

fn bad_version(message: &str) -> Response {
    problem(StatusCode::BAD_REQUEST, "badVersion", message, false)
}
