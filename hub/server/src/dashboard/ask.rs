//! Asking the API inside the process, for whoever is logged in.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use minijinja::Value as View;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::Value;
use tower_service::Service;

use super::session::Session;
use super::{Dashboard, PageError};
use crate::http::access::{Caller, REASON};

/// No answer of the API is larger.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// A value for a template.
pub(super) fn view(value: &impl Serialize) -> View {
    View::from(Serde(serde_json::to_value(value).unwrap_or_default()))
}

/// What the API answers.
#[derive(Clone, Debug)]
pub(super) struct ApiResponse {
    pub(super) status: StatusCode,
    /// The whole envelope.
    pub(super) whole: Value,
}

impl ApiResponse {
    /// What it is about.
    pub(super) fn data(&self) -> &Value {
        &self.whole["data"]
    }

    /// What it says, in words: what is wrong with each field, if that is it, and else its message.
    pub(super) fn message(&self) -> String {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let errors = self.whole["errors"].as_array().map_or(&[][..], Vec::as_slice);
        let errors: Vec<String> = errors
            .iter()
            .map(|error| format!("{}: {}", word(&error["field"]), word(&error["reason"])))
            .collect();
        if errors.is_empty() { word(&self.whole["message"]) } else { errors.join("; ") }
    }
}

impl Dashboard {
    /// What the API answers to this, for this session.
    pub(super) async fn ask(
        &self,
        session: &Session,
        method: Method,
        path: &str,
        body: Option<&Value>,
        reason: Option<&str>,
    ) -> Result<ApiResponse, PageError> {
        let broken = |error: &dyn std::fmt::Display| PageError::Broken(format!("{path}: {error}"));
        let text = body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(text))
            .map_err(|error| broken(&error))?;
        // The header takes any bytes but control characters.
        if let Some(reason) = reason.and_then(|reason| HeaderValue::from_bytes(reason.as_bytes()).ok()) {
            request.headers_mut().insert(REASON, reason);
        }
        request.extensions_mut().insert(Caller::of(session.key.clone()));
        let response = self.api.clone().call(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), ANSWER_MAX).await.map_err(|error| broken(&error))?;
        let whole = serde_json::from_slice(&bytes).map_err(|error| broken(&error))?;
        Ok(ApiResponse { status, whole })
    }

    /// What is at this path of the API, passed on as it comes: it may be more than fits into memory.
    pub(super) async fn pass(&self, session: &Session, path: &str) -> Result<Response, PageError> {
        let broken = |error: &dyn std::fmt::Display| PageError::Broken(format!("{path}: {error}"));
        let mut request = Request::builder().uri(path).body(Body::empty()).map_err(|error| broken(&error))?;
        request.extensions_mut().insert(Caller::of(session.key.clone()));
        let response = self.api.clone().call(request).await.map_err(|error| broken(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(PageError::Answered { status: response.status(), message: "not available".into() })
    }
}
