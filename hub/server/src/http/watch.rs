//! What is told of requests: those that the hub could not serve, and webhooks that it refused.

use std::sync::{Arc, LazyLock};

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use metrics::counter;
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use seawall_hub_core::service::numbers;
use tracing::{error, warn};

use super::reply::TRACE;

/// So many lines of a kind are written in a second at most: whoever can send requests must not be able to fill the log.
const LINES_PER_SECOND: u32 = 20;

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::system);
static FAILURES: LazyLock<Sampler> = LazyLock::new(|| Sampler::new(LINES_PER_SECOND));
static REFUSALS: LazyLock<Sampler> = LazyLock::new(|| Sampler::new(LINES_PER_SECOND));

/// A request, as far as it is needed to tell of its failure.
pub(super) struct Seen {
    method: Method,
    uri: axum::http::Uri,
    trace: String,
    began: Tick,
}

impl Seen {
    pub(super) fn new(request: &Request, trace: &str) -> Self {
        Seen {
            method: request.method().clone(),
            uri: request.uri().clone(),
            trace: trace.to_owned(),
            began: CLOCK.precise(),
        }
    }

    /// One line for each answer that says that the hub could not: a warning, if the same request may go well later.
    pub(super) fn answered(&self, response: &Response) {
        let status = response.status();
        if !status.is_server_error() {
            return;
        }
        let now = CLOCK.precise();
        let Some(suppressed) = FAILURES.pass(now) else { return };
        let (trace, method, path) = (&*self.trace, self.method.as_str(), self.uri.path());
        let duration = Took(now.since(self.began));
        let cause = response.extensions().get::<Cause>().map_or("unknown", |cause| &*cause.0);
        // A store that is full has said so by itself, and a circuit when it opened.
        let passes = response.extensions().get::<Passes>().is_some();
        if passes || matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE) {
            warn!(target: "seawall", traceId = trace, method, path, httpStatus = status.as_u16(), cause, %duration, suppressed, "[Api][Answer] Failed!");
        } else {
            error!(target: "seawall", traceId = trace, method, path, httpStatus = status.as_u16(), cause, %duration, action = "ManualReview", suppressed, "[Api][Answer] Failed!");
        }
    }
}

/// Why the hub could not.
#[derive(Clone)]
struct Cause(Arc<str>);

/// Nobody has to do anything: the same request may go well later.
#[derive(Clone)]
struct Passes;

/// Remembers that it is somebody else's trouble, and may pass.
pub(super) fn may_pass(mut response: Response, passes: bool) -> Response {
    if passes && response.status().is_server_error() {
        response.extensions_mut().insert(Passes);
    }
    response
}

/// Remembers why an answer is what it is, for the line about it.
pub(super) fn because(mut response: Response, why: &str) -> Response {
    if response.status().is_server_error() {
        response.extensions_mut().insert(Cause(why.into()));
    }
    response
}

/// A webhook that is not taken. Its sender learns nothing; here stands why.
pub(super) fn webhook_refused(source: &str, known: bool, why: &str) {
    // The name is whatever somebody has written into a path, unless there is such a source.
    let label = if known { source.to_owned() } else { "(unknown)".to_owned() };
    counter!(numbers::WEBHOOKS_REFUSED, "source" => label).increment(1);
    let Some(suppressed) = REFUSALS.pass(CLOCK.now()) else { return };
    let trace = TRACE.try_with(Clone::clone).ok();
    warn!(target: "seawall", traceId = trace.as_deref(), source, cause = why, suppressed, "[Webhook][Verify] Failed!");
}
