//! Successful responses: one envelope for everything.

use std::fmt::Write;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seawall_hub_core::domain::trace::TraceId;
use serde::Serialize;
use serde_json::Value;

use super::error::ApiError;
use super::once::REPLAYED;

/// The result of a handler whose response has a `T` in the envelope.
pub(super) type ApiResult<T> = Result<ApiReply<T>, ApiError>;

/// A successful response with a `T` in the envelope.
pub(super) struct ApiReply<T> {
    status: StatusCode,
    data: ReplyData<T>,
    /// The version of the object that is returned.
    version: Option<u64>,
    /// True if the request was carried out before, under the same idempotency key.
    is_replayed: bool,
}

enum ReplyData<T> {
    Typed(T),
    Written(String),
}

impl<T> ApiReply<T> {
    /// A response with the status 200.
    pub(super) fn new(data: T) -> Self {
        ApiReply::of(ReplyData::Typed(data))
    }

    /// A response with the version of the object, which a later change can name.
    pub(super) fn versioned(version: u64, data: T) -> Self {
        ApiReply { version: Some(version), ..ApiReply::new(data) }
    }

    /// A response with the status 202.
    pub(super) fn accepted(data: T) -> Self {
        ApiReply::new(data).with_status(StatusCode::ACCEPTED)
    }

    /// A response whose data is JSON already.
    pub(super) fn written(data: String) -> Self {
        ApiReply::of(ReplyData::Written(data))
    }

    fn of(data: ReplyData<T>) -> Self {
        ApiReply { status: StatusCode::OK, data, version: None, is_replayed: false }
    }

    /// The same response with another status.
    pub(super) fn with_status(self, status: StatusCode) -> Self {
        ApiReply { status, ..self }
    }

    /// The same response, marked as one that was given before.
    pub(super) fn replayed(self) -> Self {
        ApiReply { is_replayed: true, ..self }
    }
}

impl<T: Serialize> IntoResponse for ApiReply<T> {
    fn into_response(self) -> Response {
        let ApiReply { status, data, version, is_replayed } = self;
        let data = match data {
            ReplyData::Written(text) => text,
            ReplyData::Typed(data) => match serde_json::to_string(&data) {
                Ok(text) => text,
                Err(_) => return ApiError::internal().into_response(),
            },
        };
        let parts = [r#"{"status":""#, status_word(status), r#"","data":"#, &data, r#","message":null"#];
        let mut body = String::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + END_LENGTH);
        parts.iter().for_each(|part| body.push_str(part));
        let mut response = open(status, body);
        if let Some(tag) = version.and_then(|version| HeaderValue::try_from(format!("\"{version}\"")).ok()) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        if is_replayed {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

const JSON: &str = "application/json";

/// A response of the API without its end: the outermost layer adds the trace of the request.
#[derive(Clone)]
struct OpenEnvelope(String);

/// The length of the end of an envelope: `,"traceId":"` with 32 digits and `"}`.
const END_LENGTH: usize = 46;

fn status_word(status: StatusCode) -> &'static str {
    if status == StatusCode::ACCEPTED { "accepted" } else { "ok" }
}

/// What stands before the data of a success, and what behind it.
pub(super) fn envelope(status: StatusCode, trace: Option<TraceId>) -> (String, String) {
    let mut after = r#","message":null"#.to_owned();
    close(&mut after, trace);
    (format!(r#"{{"status":"{}","data":"#, status_word(status)), after)
}

/// Returns a response whose envelope is still open.
pub(super) fn open(status: StatusCode, envelope: String) -> Response {
    let mut response = (status, [(header::CONTENT_TYPE, JSON)]).into_response();
    response.extensions_mut().insert(OpenEnvelope(envelope));
    response
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
    let status = response.status();
    let is_ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == JSON);
    let is_error = status.is_client_error() || status.is_server_error();
    let mut response =
        if is_error && !is_ours { ApiError::of_status(status).into_response() } else { response };
    if let Some(OpenEnvelope(mut envelope)) = response.extensions_mut().remove() {
        close(&mut envelope, trace);
        *response.body_mut() = envelope.into();
    }
    response
}

/// The JSON of a request.
pub(super) fn parse(bytes: &Bytes) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// The version that whoever changes something has seen: `If-Match: "3"`, or `If-None-Match: *` for none at all.
pub(super) fn expected(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match text(header::IF_NONE_MATCH) {
        Some("*") => return Ok(Some(0)),
        // Passed over, it would change what whoever sent it did not want changed.
        Some(_) => return Err(ApiError::new("badVersion", "`If-None-Match` must be `*`")),
        None => {}
    }
    let Some(tag) = text(header::IF_MATCH).filter(|tag| *tag != "*") else { return Ok(None) };
    tag.trim_matches('"').parse().map(Some).map_err(|_| {
        let message = format!("`If-Match: {tag}` is not a version; write `If-Match: \"3\"`");
        ApiError::new("badVersion", message)
    })
}
