//! The gateway: services that are called through the hub, now.
//!
//! `/gateway/{name}/{path}` is a proxy: a program changes its base URL and nothing else. It stands in front of the API, on the
//! connection itself, because routes and layers would cost as much as all the rest of passing a small request on.
//!
//! What goes through it goes through the guard of the service, the same one that its deliveries have. A call has its place in
//! the bulkhead until the last byte of the answer, and so long its deadline holds.

mod forward;
mod refusal;
mod relay;

pub(crate) use refusal::{Last, Refusal};
pub(crate) use relay::Relay;

use std::sync::Arc;

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use seawall::Error;
use seawall_http::{Cause, Held, HttpError, header};
use tokio::sync::Notify;

use seawall_hub_core::domain::key::{Key, Scope};

use crate::hub::Hub;
use crate::serve::Line;

/// The caller's key, so that its own `Authorization` is for the upstream.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-seawall-key");
/// How often it was tried, if that was more than once.
const ATTEMPTS: HeaderName = HeaderName::from_static("seawall-attempts");
/// How often connections are looked for that nobody uses.
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
const PREFIX: &str = "/gateway/";

/// Passes requests on to services.
#[derive(Debug)]
pub(crate) struct Gateway {
    hub: Arc<Hub>,
    /// Rung when a circuit may have moved.
    moved: Arc<Notify>,
}

impl Gateway {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Gateway { hub, moved: Arc::default() }
    }

    /// Whether a path is the gateway's.
    pub(crate) fn is_for(path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    /// Writes down circuits that have moved, and closes what nobody uses, for ever: those who pass bytes on do not wait for it.
    pub(crate) async fn observe(&self) {
        loop {
            tokio::select! {
                () = self.moved.notified() => self.hub.observe_circuits().await,
                () = tokio::time::sleep(SWEEP_EVERY) => self.hub.transport().client().close_idle(),
            }
        }
    }

    /// Passes a request on, and its answer back.
    pub(crate) async fn pass(
        &self,
        request: Request<Incoming>,
        line: &Arc<Line>,
    ) -> Result<Response<Relay>, Box<Response<axum::body::Body>>> {
        let (mut parts, body) = request.into_parts();
        let refused =
            |headers: &HeaderMap, refusal: &Refusal| Box::new(crate::http::refused(headers, refusal));
        let (name, path) = forward::split(&parts.uri);
        let caller = match self.authorised(&parts.headers) {
            Ok(caller) => caller,
            Err((status, code, word)) => {
                return Err(refused(&parts.headers, &Refusal::own(status, code, word)));
            }
        };
        // What is not for the caller looks as if it were not there.
        let Some(target) = self.hub.target(name).filter(|target| caller.sees(&target.service.name)) else {
            let refusal = Refusal::own(StatusCode::NOT_FOUND, "notFound", "there is no such service");
            return Err(refused(&parts.headers, &refusal));
        };
        if target.service.paused {
            return Err(refused(&parts.headers, &Refusal::paused()));
        }
        // Kept for its answer, if that is a refusal.
        let trace = parts.headers.get("traceparent").cloned();
        let again =
            || trace.into_iter().map(|trace| (HeaderName::from_static("traceparent"), trace)).collect();
        let bounds = forward::bounds(&parts.headers);
        let transport = self.hub.transport();
        let made = match forward::checked(&parts, &path) {
            Ok(()) => forward::outgoing(&mut parts, body, &path, &target.service, transport, line).await,
            Err(refusal) => Err(refusal),
        };
        let made = match made {
            Ok(made) => made,
            Err(refusal) => return Err(refused(&again(), &refusal)),
        };
        match transport.client().hold(&target.guard, made, bounds).await {
            Ok(held) => Ok(answer(held, target, line, &self.moved)),
            Err(error) => {
                if target.may_have_moved(true) {
                    self.moved.notify_one();
                }
                Err(refused(&again(), &refusal(&error)))
            }
        }
    }

    /// Whose key these headers carry, if it may call services.
    fn authorised(&self, headers: &HeaderMap) -> Result<Arc<Key>, (StatusCode, &'static str, &'static str)> {
        let mut given = headers.get_all(&KEY).iter();
        let key = match (given.next().and_then(|key| key.to_str().ok()), given.next()) {
            (Some(key), None) => self.hub.key_with(&crate::http::key_hash(key)),
            _ => None,
        };
        match key {
            None => Err((StatusCode::UNAUTHORIZED, "unauthorised", "a key is needed: `X-Seawall-Key: KEY`")),
            Some(key) if !key.scopes.allow(Scope::Call) => Err((
                StatusCode::FORBIDDEN,
                "forbidden",
                "this needs the scope `call`, which the key does not have",
            )),
            Some(key) => Ok(key),
        }
    }
}

fn answer(
    held: Held,
    target: seawall_hub_core::service::Target,
    line: &Arc<Line>,
    moved: &Arc<Notify>,
) -> Response<Relay> {
    let (status, attempt, failed, deadline) =
        (held.status(), held.attempt(), held.fault().is_some(), held.deadline());
    let (mut headers, body) = held.into_parts();
    header::strip(&mut headers);
    if attempt > 1 {
        headers.insert(ATTEMPTS, HeaderValue::from(attempt));
    }
    let mut response = Response::new(Relay::new(body, target, failed, deadline, line, moved));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn refusal(error: &Error<HttpError>) -> Refusal {
    let said = error.last().map(ToString::to_string);
    let cause = error.last().map(HttpError::cause);
    if let Some(Cause::Request(bad)) = cause {
        // The target was fine when it was registered, so it is what was to be passed on.
        return Refusal::own(StatusCode::BAD_REQUEST, "badRequest", bad.to_string());
    }
    let last = Last {
        error: said.as_deref(),
        impossible: matches!(cause, Some(Cause::Egress(_) | Cause::Credentials(_))),
        too_large: false,
    };
    Refusal::of(error, last)
}
