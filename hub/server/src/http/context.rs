//! What a handler knows of its request: the hub, the caller and the context of its changes.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::service::{Author, Context};

use super::access::Caller;
use super::error::ApiError;
use crate::hub::Server;

/// The context of a request with a key. It stands for the context of what the request changes.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) hub: Arc<Server>,
    pub(crate) caller: Caller,
    pub(crate) context: Context,
}

impl RequestContext {
    /// Creates the context of a request whose caller is known.
    pub(super) fn new(
        hub: Arc<Server>,
        caller: Caller,
        reason: Option<String>,
        trace: Option<TraceId>,
    ) -> Self {
        let author = Author::Key(caller.name().clone());
        let context = Context { author, reason, trace, now: hub.now() };
        RequestContext { hub, caller, context }
    }

    /// Sets the time to now: a body may take long to arrive.
    pub(super) fn refresh(&mut self) {
        self.context.now = self.hub.now();
    }
}

impl Deref for RequestContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl<S: Sync> FromRequestParts<S> for RequestContext {
    type Rejection = ApiError;

    /// Takes the context that the guard has made. A route without a guard has none.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.remove::<RequestContext>().ok_or_else(ApiError::internal)
    }
}

/// The length of the verb at the end of a path such as `…/services/{name}:pause`.
#[derive(Clone, Copy)]
pub(super) struct VerbLength(pub(super) usize);

/// The parameter of a path without its verb: the name or the id of what an action is for.
pub(super) struct Target(String);

impl Deref for Target {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Target {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(mut text) = path.map_err(IntoResponse::into_response)?;
        if let Some(VerbLength(verb)) = parts.extensions.get() {
            text.truncate(text.len().saturating_sub(verb + ":".len()));
        }
        Ok(Target(text))
    }
}
