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

pub(crate) use refusal::{GatewayRefusal, LastFailure};
pub(crate) use relay::Relay;

use std::sync::Arc;

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use seawall::{Error, Fault, Kind};
use seawall_http::{AttemptObserver, Cause, Held, HttpError, header};
use seawall_hub_core::domain::key::{Key, Scope};
use seawall_hub_core::service::GuardedService;
use tokio::sync::Notify;

use crate::hub::Server;
use crate::serve::ConnectionLimits;
use crate::spans::GatewaySpan;

/// The caller's key, so that its own `Authorization` is for the upstream.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-seawall-key");
/// How often it was tried, if that was more than once.
const ATTEMPTS: HeaderName = HeaderName::from_static("seawall-attempts");
/// How often connections are looked for that nobody uses.
const SWEEP_EVERY: std::time::Duration = std::time::Duration::from_secs(5);
const PREFIX: &str = "/gateway/";
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Passes requests on to services.
#[derive(Debug)]
pub(crate) struct Gateway {
    hub: Arc<Server>,
    /// Rung when a circuit may have moved.
    moved: Arc<Notify>,
}

impl Gateway {
    pub(crate) fn new(hub: Arc<Server>) -> Self {
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
                () = self.moved.notified() => self.hub.gateway.observe_circuits().await,
                () = tokio::time::sleep(SWEEP_EVERY) => self.hub.transport.client().close_idle(),
            }
        }
    }

    /// Passes a request on, and its answer back.
    pub(crate) async fn pass(
        &self,
        request: Request<Incoming>,
        line: &Arc<ConnectionLimits>,
    ) -> Result<Response<Relay>, Box<Response<axum::body::Body>>> {
        let (mut parts, body) = request.into_parts();
        // Kept for its answer, if that is a refusal.
        let trace = parts.headers.get(TRACEPARENT).cloned();
        self.through(&mut parts, body, line).await.map_err(|refusal| {
            let said = trace.into_iter().map(|trace| (TRACEPARENT, trace)).collect();
            Box::new(crate::http::refused(&said, &refusal))
        })
    }

    async fn through(
        &self,
        parts: &mut Parts,
        body: Incoming,
        line: &Arc<ConnectionLimits>,
    ) -> Result<Response<Relay>, Box<GatewayRefusal>> {
        let uri = std::mem::take(&mut parts.uri);
        let (name, path) = forward::split(&uri);
        let caller = self.authorised(&parts.headers)?;
        // What is not for the caller looks as if it were not there.
        let Some(target) = self.hub.gateway.target(name).filter(|target| caller.sees(&target.service.name))
        else {
            return Err(
                GatewayRefusal::own(StatusCode::NOT_FOUND, "notFound", "there is no such service").into()
            );
        };
        if target.service.paused {
            return Err(GatewayRefusal::paused().into());
        }
        let passage = self.passage(parts, &target);
        let teller = passage
            .as_ref()
            .map(|passage| passage.teller(&self.hub.spans, parts.method.as_str(), &target.service));
        match self.held(parts, body, &path, &target, teller, line).await {
            Ok(held) => Ok(answer(held, target, line, &self.moved, passage)),
            Err(refusal) => {
                if let Some(passage) = passage {
                    passage.answered(refusal.status, Some(refusal.message.clone()));
                }
                Err(refusal)
            }
        }
    }

    /// The answer of the service, as far as it has come.
    async fn held(
        &self,
        parts: &mut Parts,
        body: Incoming,
        path: &str,
        target: &GuardedService,
        teller: Option<Arc<dyn AttemptObserver>>,
        line: &ConnectionLimits,
    ) -> Result<Held, Box<GatewayRefusal>> {
        let (bounds, transport) = (forward::bounds(&parts.headers), &self.hub.transport);
        forward::checked(parts, path)?;
        let mut made = forward::outgoing(parts, body, path, &target.service, transport, line).await?;
        if let Some(teller) = teller {
            made = made.observed_by(teller);
        }
        transport.client().hold(&target.guard, made, bounds).await.map_err(|error| {
            target.called(false, error.attempts());
            let counts = error.last().is_none_or(|last| last.fault().counts());
            if counts && error.kind() != Kind::Rejected {
                let said = error.last().map_or_else(|| error.to_string(), ToString::to_string);
                target.note_failure(&said);
            }
            if target.may_have_moved(true) {
                self.moved.notify_one();
            }
            refusal(&error).into()
        })
    }

    /// Its place in a trace, if anybody wants to know.
    fn passage(&self, parts: &Parts, target: &GuardedService) -> Option<Box<GatewaySpan>> {
        let spans = &self.hub.spans;
        if !spans.are_wanted() {
            return None;
        }
        let said = parts.headers.get(TRACEPARENT).and_then(|said| said.to_str().ok());
        let route = (parts.method.as_str(), "/gateway/{name}/{path}");
        spans.passage(said, crate::http::fresh_trace, route, target.service.name.as_str())
    }

    /// Whose key these headers carry, if it may call services.
    fn authorised(&self, headers: &HeaderMap) -> Result<Arc<Key>, GatewayRefusal> {
        let mut given = headers.get_all(&KEY).iter();
        let found = match (given.next().and_then(|key| key.to_str().ok()), given.next()) {
            (Some(key), None) => {
                self.hub.registry.key_with(&crate::http::key_hash(key)).ok_or(crate::http::UNKNOWN_KEY)
            }
            _ => Err("a key is needed: `X-Seawall-Key: KEY`"),
        };
        let key =
            found.map_err(|reason| GatewayRefusal::own(StatusCode::UNAUTHORIZED, "unauthorised", reason))?;
        if !key.scopes.allow(Scope::Call) {
            let word = "this needs the scope `call`, which the key does not have";
            return Err(GatewayRefusal::own(StatusCode::FORBIDDEN, "forbidden", word));
        }
        Ok(key)
    }
}

fn answer(
    held: Held,
    target: GuardedService,
    line: &Arc<ConnectionLimits>,
    moved: &Arc<Notify>,
    passage: Option<Box<GatewaySpan>>,
) -> Response<Relay> {
    let (status, attempt, failed, deadline) =
        (held.status(), held.attempt(), held.fault().is_some(), held.deadline());
    target.called(!failed, attempt);
    if let Some(fault) = held.fault().filter(Fault::counts) {
        target.note_failure(&fault.to_string());
    }
    let (mut headers, body) = held.into_parts();
    header::strip(&mut headers);
    // What the hub says of itself is said by nobody else, also if the upstream is a hub.
    if headers.keys().any(|name| name.as_str().starts_with("seawall-")) {
        headers.remove(refusal::DECIDED_BY);
        headers.remove(ATTEMPTS);
    }
    if attempt > 1 {
        headers.insert(ATTEMPTS, HeaderValue::from(attempt));
    }
    let end = relay::RelayEnd { target, failed, passage: passage.map(|passage| (passage, status)) };
    let mut response = Response::new(Relay::new(body, end, deadline, line, moved));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn refusal(error: &Error<HttpError>) -> GatewayRefusal {
    let said = error.last().map(ToString::to_string);
    let cause = error.last().map(HttpError::cause);
    if let Some(Cause::Request(bad)) = cause {
        // The target was fine when it was registered, so it is what was to be passed on.
        return GatewayRefusal::own(StatusCode::BAD_REQUEST, "badRequest", bad.to_string());
    }
    if let Some(Cause::Stalled) = cause {
        return forward::slow_body();
    }
    let last = LastFailure {
        error: said.as_deref(),
        impossible: matches!(cause, Some(Cause::Egress(_) | Cause::Credentials(_))),
        too_large: false,
        no_memory: false,
    };
    GatewayRefusal::of(error, last)
}
