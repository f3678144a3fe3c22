//! Errors of the API: an entry of the table of `seawall-api`, a message for people, and the fields that are wrong.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use seawall_api::{CallFailure, ERRORS, ErrorEntry, FieldProblem};
use seawall_hub_core::port::store::StoreError;
use seawall_hub_core::render::TemplateError;
use seawall_hub_core::service::ChangeError;
use serde::Serialize;

use super::{reply, watch};
use crate::gateway::GatewayRefusal;

/// A request that is repeated after this many seconds may find a store that is not busy or full any more.
const STORE_RETRY_SECONDS: &str = "1";

/// The message for a failure that is nobody's fault outside.
const INTERNAL: &str = "internal error of the hub";

/// An error that a handler returns. The outermost layer adds the trace of the request.
#[derive(Debug)]
pub(crate) struct ApiError(Box<ErrorContent>);

#[derive(Debug)]
struct ErrorContent {
    entry: ErrorEntry,
    message: String,
    fields: Vec<FieldProblem>,
    /// What is known about a call that failed.
    call: Option<CallFailure>,
    headers: HeaderMap,
    /// True if the same request may succeed later, so that nobody has to act.
    is_transient: bool,
}

/// The body of an error, without its end. Clients read it as `seawall_api::ErrorBody`.
#[derive(Serialize)]
struct ErrorText<'a> {
    status: &'static str,
    data: Option<CallFailure>,
    code: &'static str,
    message: &'a str,
    retryable: bool,
    errors: Vec<FieldProblem>,
}

impl ApiError {
    /// The error with this code. For a code with several statuses it has the first one of the table.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        let entry = ERRORS.iter().find(|entry| entry.code == code).copied();
        debug_assert!(entry.is_some(), "`{code}` is in no list of errors");
        let (meaning, remedy) = ("", "");
        let entry = entry.unwrap_or(ErrorEntry { code, status: 500, retryable: false, meaning, remedy });
        ApiError(Box::new(ErrorContent {
            entry,
            message: message.into(),
            fields: Vec::new(),
            call: None,
            headers: HeaderMap::new(),
            is_transient: false,
        }))
    }

    /// The error for something that does not exist, or that the caller may not see.
    pub(crate) fn missing(what: &str) -> Self {
        ApiError::new("notFound", format!("there is no such {what}"))
    }

    /// The error for a failure of the hub itself.
    pub(crate) fn internal() -> Self {
        ApiError::new("internal", INTERNAL)
    }

    /// The error for a request that no handler has seen.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => {
                ApiError::new("tooLarge", "the body is larger than the maximum request size of 1 MiB")
            }
            _ if status.is_server_error() => ApiError::internal().with_status(status),
            _ => ApiError::new("badRequest", "the request can't be read").with_status(status),
        }
    }

    /// The error for a call that got no response, with what is known about it.
    pub(super) fn of_call(refusal: &GatewayRefusal, call: Option<CallFailure>) -> Self {
        let GatewayRefusal { status, code, message, retryable, .. } = refusal;
        let mut error = ApiError::new(code, message.as_str()).with_status(*status);
        debug_assert!(error.0.entry.retryable == *retryable, "`{code}` is retryable or not");
        error.0.call = call;
        error.0.is_transient = *retryable;
        refusal.tell(&mut error.0.headers);
        error
    }

    /// The same error with another status of its code.
    fn with_status(mut self, status: StatusCode) -> Self {
        let entry = &mut self.0.entry;
        match ErrorEntry::find(status.as_u16(), entry.code) {
            Some(found) => *entry = *found,
            None => entry.status = status.as_u16(),
        }
        self
    }

    /// The same error with a header.
    pub(super) fn with_header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::try_from(value) {
            self.0.headers.insert(name, value);
        }
        self
    }

    /// The same error with the number of seconds to wait before the next request.
    pub(super) fn retry_after(self, seconds: &str) -> Self {
        self.with_header(header::RETRY_AFTER, seconds)
    }

    /// True if somebody else has changed the object in the meantime.
    pub(super) fn is_stale(&self) -> bool {
        self.0.entry.code == "stale"
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ErrorContent { entry, message, fields, call, headers, is_transient } = *self.0;
        let ErrorEntry { code, status, retryable, .. } = entry;
        let text =
            ErrorText { status: "error", data: call, code, message: &message, retryable, errors: fields };
        let mut body = serde_json::to_string(&text).unwrap_or_default();
        body.pop();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = reply::open(status, body);
        response.headers_mut().extend(headers);
        watch::may_pass(watch::because(response, &message), is_transient)
    }
}

impl From<Vec<FieldProblem>> for ApiError {
    fn from(fields: Vec<FieldProblem>) -> Self {
        let mut error = ApiError::new("invalid", "some fields are invalid; see `errors`");
        error.0.fields = fields;
        error
    }
}

impl From<FieldProblem> for ApiError {
    fn from(field: FieldProblem) -> Self {
        vec![field].into()
    }
}

impl From<serde_json::Error> for ApiError {
    fn from(error: serde_json::Error) -> Self {
        ApiError::new("notJson", format!("the body is not valid JSON: {error}"))
    }
}

impl From<&StoreError> for ApiError {
    fn from(error: &StoreError) -> Self {
        let code = match error {
            StoreError::Stale { .. } => "stale",
            StoreError::Busy => "busy",
            StoreError::Full => "full",
            StoreError::Damaged(_) => "damaged",
            _ => "store",
        };
        let mut api = ApiError::new(code, error.to_string());
        if matches!(error, StoreError::Unavailable { .. } | StoreError::Broken(_)) {
            api = api.with_status(StatusCode::SERVICE_UNAVAILABLE);
        }
        if api.0.entry.retryable { api.retry_after(STORE_RETRY_SECONDS) } else { api }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        (&error).into()
    }
}

/// Problems of fields, each with its reason.
pub(super) fn field_problems(problems: Vec<(String, String)>) -> Vec<FieldProblem> {
    problems.into_iter().map(|(field, reason)| FieldProblem { field, reason }).collect()
}

/// The problem with a template of a rule or a source.
pub(super) fn template_problem(TemplateError { place, reason }: TemplateError) -> FieldProblem {
    FieldProblem { field: place, reason }
}

/// The error for a change of this kind of object that was not made.
pub(super) fn refused(what: &str) -> impl FnOnce(ChangeError) -> ApiError {
    move |error| match error {
        ChangeError::Wrong(problems) => field_problems(problems).into(),
        ChangeError::Missing => ApiError::missing(what),
        ChangeError::Conflict(reason) => ApiError::new("conflict", reason),
        ChangeError::Repeated(_) => ApiError::new("conflict", error.to_string()),
        ChangeError::OtherContent => ApiError::new("otherContent", error.to_string()),
        ChangeError::Busy => ApiError::new("busy", error.to_string()).retry_after(STORE_RETRY_SECONDS),
        ChangeError::Store(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-14: a store that can't be reached is no error of the hub: the caller is told to come back, whether or not the unit
    /// was sent, and repeating is safe.
    #[test]
    fn hub_14_a_store_that_is_unavailable_answers_503_with_retry_after() {
        for sent in [false, true] {
            let response = ApiError::from(StoreError::Unavailable { sent }).into_response();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()[header::RETRY_AFTER], STORE_RETRY_SECONDS);
        }
    }

    /// API-4: whether a request may be repeated is said by the table alone, also for a code with two statuses.
    #[test]
    fn api_4_an_error_has_the_status_of_its_entry() {
        let of =
            |status: u16| ApiError::new("tooLarge", "").with_status(StatusCode::from_u16(status).unwrap());
        for status in [413, 502] {
            assert_eq!(of(status).0.entry, *ErrorEntry::find(status, "tooLarge").unwrap());
        }
        assert_eq!(ApiError::internal().into_response().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
