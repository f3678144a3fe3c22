//! Answers: one envelope for everything.

use std::fmt::Write;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::service::ChangeError;
use serde::Serialize;
use serde_json::Value;

use super::fields::FieldError;
use super::watch;
use seawall_api::{ErrorEntry, FieldProblem};

const JSON: &str = "application/json";

/// A response of the API without its end: the outermost layer adds the trace of the request.
#[derive(Clone)]
struct OpenEnvelope(String);

/// The length of the end of an envelope: `,"traceId":"` with 32 digits and `"}`.
const END_LENGTH: usize = 46;

/// A store that is busy or full is worth another try after so many seconds.
const STORE_RETRY_SECONDS: &str = "1";

/// What went well.
pub(super) fn success(status: StatusCode, data: &impl Serialize) -> Response {
    match serde_json::to_string(data) {
        Ok(data) => success_text(status, &data),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error of the hub", false),
    }
}

/// The same, for whoever has the JSON as a text already.
pub(super) fn success_text(status: StatusCode, data: &str) -> Response {
    let parts = [r#"{"status":""#, status_word(status), r#"","data":"#, data, r#","message":null"#];
    let mut body = String::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + END_LENGTH);
    parts.iter().for_each(|part| body.push_str(part));
    answer(status, body)
}

fn status_word(status: StatusCode) -> &'static str {
    if status == StatusCode::ACCEPTED { "accepted" } else { "ok" }
}

/// What stands before the data of a success, and what behind it.
pub(super) fn envelope(status: StatusCode, trace: Option<TraceId>) -> (String, String) {
    let mut after = r#","message":null"#.to_owned();
    close(&mut after, trace);
    (format!(r#"{{"status":"{}","data":"#, status_word(status)), after)
}

/// Writes the end of an envelope.
fn close(envelope: &mut String, trace: Option<TraceId>) {
    envelope.push_str(r#","traceId":""#);
    if let Some(trace) = trace {
        let _ = write!(envelope, "{trace}");
    }
    envelope.push_str("\"}");
}

/// Completes a response with the trace of its request. What was refused before a handler saw it gets the same envelope as
/// everything else.
pub(super) fn completed(response: Response, trace: Option<TraceId>) -> Response {
    let mut response = enveloped(response);
    if let Some(OpenEnvelope(mut envelope)) = response.extensions_mut().remove() {
        close(&mut envelope, trace);
        *response.body_mut() = envelope.into();
    }
    response
}

/// With the version of what it shows, for whoever wants to change it.
pub(super) fn versioned(status: StatusCode, version: u64, data: &impl Serialize) -> Response {
    let mut response = success(status, data);
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// What did not.
pub(super) fn problem(status: StatusCode, code: &str, message: &str, retryable: bool) -> Response {
    problem_about(status, code, message, retryable, &())
}

/// The same, with what is known all the same.
pub(super) fn problem_about(
    status: StatusCode,
    code: &str,
    message: &str,
    retryable: bool,
    data: &impl Serialize,
) -> Response {
    failure(status, &ErrorContent { status: "error", data, code, message, retryable, errors: &[] })
}

/// The body of an error, without the trace that the outermost layer adds. Clients read it as `seawall_api::ErrorBody`.
#[derive(Serialize)]
struct ErrorContent<'a, D> {
    status: &'static str,
    data: &'a D,
    code: &'a str,
    message: &'a str,
    retryable: bool,
    errors: &'a [FieldProblem],
}

fn failure<D: Serialize>(status: StatusCode, error: &ErrorContent<'_, D>) -> Response {
    let ErrorContent { code, message, retryable, .. } = *error;
    debug_assert!(
        ErrorEntry::find(status.as_u16(), code).is_some_and(|entry| entry.retryable == retryable),
        "`{code}` with {status} is in no list of errors"
    );
    let mut body = serde_json::to_string(error).unwrap_or_default();
    body.pop();
    watch::because(answer(status, body), message)
}

/// Some fields are wrong.
pub(super) fn wrong_fields(problems: &[FieldError]) -> Response {
    let problem = |FieldError { field, reason }: &FieldError| FieldProblem {
        field: field.clone(),
        reason: reason.clone(),
    };
    let errors: Vec<FieldProblem> = problems.iter().map(problem).collect();
    let (code, message) = ("invalid", "some fields are invalid; see `errors`");
    let error = ErrorContent { status: "error", data: &(), code, message, retryable: false, errors: &errors };
    failure(StatusCode::UNPROCESSABLE_ENTITY, &error)
}

pub(super) fn missing(what: &str) -> Response {
    problem(StatusCode::NOT_FOUND, "notFound", &format!("there is no such {what}"), false)
}

/// A change that was not made.
pub(super) fn refused(refused: ChangeError, what: &str) -> Response {
    match refused {
        ChangeError::Wrong(problems) => {
            let problem = |(field, reason)| FieldError { field, reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        ChangeError::Missing => missing(what),
        ChangeError::Conflict(reason) => problem(StatusCode::CONFLICT, "conflict", &reason, false),
        ChangeError::Repeated(_) => problem(StatusCode::CONFLICT, "conflict", &refused.to_string(), false),
        ChangeError::OtherContent => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "otherContent", &refused.to_string(), false)
        }
        ChangeError::Busy => {
            let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "busy", &refused.to_string(), true);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(STORE_RETRY_SECONDS));
            response
        }
        ChangeError::Store(error) => store_problem(&error),
    }
}

pub(super) fn store_problem(error: &StoreError) -> Response {
    let (status, code, retryable) = match error {
        StoreError::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale", false),
        StoreError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", true),
        StoreError::Full => (StatusCode::INSUFFICIENT_STORAGE, "full", true),
        StoreError::Damaged(_) => (StatusCode::SERVICE_UNAVAILABLE, "damaged", true),
        StoreError::Unavailable { .. } | StoreError::Broken(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "store", true)
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "store", true),
    };
    let mut response = problem(status, code, &error.to_string(), retryable);
    if retryable {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(STORE_RETRY_SECONDS));
    }
    response
}

fn enveloped(response: Response) -> Response {
    let status = response.status();
    let ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    match status {
        _ if ours || !(status.is_client_error() || status.is_server_error()) => response,
        StatusCode::PAYLOAD_TOO_LARGE => {
            problem(status, "tooLarge", "the body is larger than the maximum request size of 1 MiB", false)
        }
        _ if status.is_server_error() => problem(status, "internal", "internal error of the hub", false),
        _ => problem(status, "badRequest", "the request can't be read", false),
    }
}

/// Returns a response whose envelope is still open.
fn answer(status: StatusCode, envelope: String) -> Response {
    let mut response = (status, [(header::CONTENT_TYPE, JSON)]).into_response();
    response.extensions_mut().insert(OpenEnvelope(envelope));
    response
}

/// The JSON of a request.
pub(super) fn parse(bytes: &Bytes) -> Result<Value, Box<Response>> {
    serde_json::from_slice(bytes).map_err(|error| Box::new(not_json(&error)))
}

pub(super) fn not_json(error: &serde_json::Error) -> Response {
    let message = format!("the body is not valid JSON: {error}");
    problem(StatusCode::BAD_REQUEST, "notJson", &message, false)
}

/// The version that whoever changes something has seen: `If-Match: "3"`, or `If-None-Match: *` for none at all.
pub(super) fn expected(headers: &HeaderMap) -> Result<Option<u64>, Box<Response>> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match text(header::IF_NONE_MATCH) {
        Some("*") => return Ok(Some(0)),
        // Passed over, it would change what whoever sent it did not want changed.
        Some(_) => return Err(Box::new(bad_version("`If-None-Match` must be `*`"))),
        None => {}
    }
    let Some(tag) = text(header::IF_MATCH).filter(|tag| *tag != "*") else { return Ok(None) };
    tag.trim_matches('"').parse().map(Some).map_err(|_| {
        Box::new(bad_version(&format!("`If-Match: {tag}` is not a version; write `If-Match: \"3\"`")))
    })
}

fn bad_version(message: &str) -> Response {
    problem(StatusCode::BAD_REQUEST, "badVersion", message, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-14: a store that can't be reached is no error of the hub: the caller is told to come back, whether or not the unit
    /// was sent, and repeating is safe.
    #[test]
    fn hub_14_a_store_that_is_unavailable_answers_503_with_retry_after() {
        for sent in [false, true] {
            let response = store_problem(&StoreError::Unavailable { sent });
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[header::RETRY_AFTER], STORE_RETRY_SECONDS);
        }
    }
}
