//! What is told of requests: those that the hub could not serve, and webhooks that it refused.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use metrics::counter;
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::metric_names;
use tracing::{error, warn};

/// The maximum number of log lines of a kind in a second: a client must not be able to fill the log.
const LINES_PER_SECOND: u32 = 20;

/// The log lines about requests, of which only some are written in a second.
#[derive(Debug)]
pub(crate) struct RequestTelemetry {
    clock: Clock,
    failures: Sampler,
    refusals: Sampler,
}

impl RequestTelemetry {
    pub(crate) fn new(clock: Clock) -> Self {
        RequestTelemetry {
            clock,
            failures: Sampler::new(LINES_PER_SECOND),
            refusals: Sampler::new(LINES_PER_SECOND),
        }
    }

    /// Counts and logs a webhook that is refused. Its sender does not learn the reason.
    pub(super) fn webhook_refused(&self, source: &str, known: bool, cause: &str, trace: TraceId) {
        // The name is whatever somebody has written into a path, unless there is such a source.
        let label = if known { source.to_owned() } else { "(unknown)".to_owned() };
        counter!(metric_names::WEBHOOKS_REFUSED, "source" => label).increment(1);
        let Some(suppressed) = self.refusals.pass(self.clock.now()) else { return };
        warn!(target: "seawall", traceId = %trace, source, cause, suppressed, "[Webhook][Verify] Failed!");
    }
}

/// A request, as far as it is needed to log its failure.
pub(super) struct RequestLog {
    method: Method,
    uri: axum::http::Uri,
    trace: TraceId,
    began: Tick,
}

impl RequestLog {
    pub(super) fn new(request: &Request, trace: TraceId, telemetry: &RequestTelemetry) -> Self {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        RequestLog { method, uri, trace, began: telemetry.clock.precise() }
    }

    /// Logs a response that says that the hub could not: a warning, if the same request may succeed later.
    pub(super) fn answered(&self, response: &Response, telemetry: &RequestTelemetry) {
        let status = response.status();
        if !status.is_server_error() {
            return;
        }
        let now = telemetry.clock.precise();
        let Some(suppressed) = telemetry.failures.pass(now) else { return };
        let (trace, method, path) = (self.trace, self.method.as_str(), self.uri.path());
        let duration = Took(now.since(self.began));
        let cause = response.extensions().get::<FailureCause>().map_or("unknown", |cause| &*cause.0);
        // A store that is full has said so by itself, and a circuit when it opened.
        let passes = response.extensions().get::<TransientMark>().is_some();
        if passes || matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE) {
            warn!(target: "seawall", traceId = %trace, method, path, httpStatus = status.as_u16(), cause, %duration, suppressed, "[Api][Answer] Failed!");
        } else {
            error!(target: "seawall", traceId = %trace, method, path, httpStatus = status.as_u16(), cause, %duration, action = "ManualReview", suppressed, "[Api][Answer] Failed!");
        }
    }
}

/// Why the hub could not.
#[derive(Clone)]
struct FailureCause(Arc<str>);

/// Nobody has to do anything: the same request may go well later.
#[derive(Clone)]
struct TransientMark;

/// Remembers that it is somebody else's trouble, and may pass.
pub(super) fn may_pass(mut response: Response, passes: bool) -> Response {
    if passes && response.status().is_server_error() {
        response.extensions_mut().insert(TransientMark);
    }
    response
}

/// Remembers why an answer is what it is, for the line about it.
pub(super) fn because(mut response: Response, why: &str) -> Response {
    if response.status().is_server_error() {
        response.extensions_mut().insert(FailureCause(why.into()));
    }
    response
}
