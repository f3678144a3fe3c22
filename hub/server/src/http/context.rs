//! What a handler knows of its request: the hub, the caller and the context of its changes.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::service::{Author, Context};

use super::EarlyResponse;
use super::access::Caller;
use super::reply::problem;
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
    type Rejection = EarlyResponse;

    /// Takes the context that the guard has made. A route without a guard has none.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let missing = || {
            let word = "internal error of the hub";
            EarlyResponse(problem(StatusCode::INTERNAL_SERVER_ERROR, "internal", word, false))
        };
        parts.extensions.remove::<RequestContext>().ok_or_else(missing)
    }
}
