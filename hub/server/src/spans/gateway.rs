//! Calls through the gateway: a span for the call as its client sees it, and one below it for each attempt, which is what the
//! upstream is told.
//!
//! A client that says that its trace is not sampled is believed: nothing is exported, and what it said is passed on as it is.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use seawall::Attempt;
use seawall_http::{AttemptObserver, HttpError, ObservedAttempt};
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::trace::{TraceId, TraceParent};
use seawall_hub_core::port::transport::{FullResponse, SendError};

use super::{OpenSpan, Span, SpanKind, Spans};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Returns the attempt of this number below a span: the same attempt has the same span, however often it is asked for.
fn attempt_below(above: TraceParent, number: u32) -> TraceParent {
    // Far apart for neighbours, as ids of spans should be.
    let span = (above.span ^ u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(17);
    TraceParent { span: span.max(1), ..above }
}

/// A call through the gateway, as its client sees it.
pub(crate) struct GatewaySpan {
    open: OpenSpan,
    context: TraceParent,
}

impl Spans {
    /// A call through the gateway begins. `said` is the trace that its client says it belongs to; without one, `own` is the trace
    /// that begins with it. Nothing, if nobody wants to know. In a box, because mostly nobody does.
    pub(crate) fn passage(
        &self,
        said: Option<&str>,
        own: impl FnOnce() -> TraceId,
        (method, route): (&str, &str),
        service: &str,
    ) -> Option<Box<GatewaySpan>> {
        let above = if self.are_wanted() { said.and_then(TraceParent::parse) } else { return None };
        if above.is_some_and(|above| !above.is_sampled()) {
            return None;
        }
        let span = u64::from_str_radix(&crate::http::random_hex::<8>(), 16).unwrap_or(1).max(1);
        let context = match above {
            Some(above) => TraceParent { span, ..above },
            None => TraceParent::within(own(), span),
        };
        let open = self.begin(|| {
            let mut span =
                Span::new(context.trace, context.span, format!("{method} {route}"), SpanKind::Server);
            span.parent = above.map(|above| above.span);
            span.text("http.request.method", method);
            span.text("http.route", route);
            span.text("seawall.service", service);
            Some(span)
        })?;
        Some(Box::new(GatewaySpan { open, context }))
    }

    /// One attempt of a call that belongs to this trace, and what its peer is told of it. If nobody wants to know, that is what
    /// was said.
    pub(crate) fn try_of(
        &self,
        trace: Option<&str>,
        (method, service): (&str, &Service),
        attempt: Attempt,
    ) -> (Option<OpenSpan>, Option<String>) {
        let context = trace.and_then(TraceParent::parse);
        let Some(context) = context.filter(|context| self.are_wanted() && context.is_sampled()) else {
            return (None, trace.map(ToOwned::to_owned));
        };
        let told = attempt_below(context, attempt.number()).to_string();
        (self.begin(|| Some(trying(context, method, service, attempt))), Some(told))
    }
}

impl GatewaySpan {
    /// What a `traceparent` says of it.
    pub(crate) fn text(&self) -> String {
        self.context.to_string()
    }

    /// Who tells of its attempts.
    pub(crate) fn teller(
        &self,
        spans: &Spans,
        method: &str,
        service: &Arc<Service>,
    ) -> Arc<dyn AttemptObserver> {
        let (spans, method, service) = (spans.clone(), method.to_owned(), service.clone());
        Arc::new(AttemptSpans { spans, context: self.context, method, service })
    }

    /// It was answered so, and this went wrong with it.
    pub(crate) fn answered(mut self, status: StatusCode, error: Option<String>) {
        if let Some(span) = &mut self.open.span {
            span.number("http.response.status_code", i64::from(status.as_u16()));
        }
        let error = error.or_else(|| status.is_server_error().then(|| status.to_string()));
        self.open.end(error);
    }
}

impl OpenSpan {
    /// An attempt of `:call` has ended.
    pub(crate) fn called(mut self, called: &Result<FullResponse, SendError>) {
        let error = match called {
            Ok(whole) => {
                if let Some(span) = &mut self.span {
                    span.number("http.response.status_code", i64::from(whole.status));
                }
                whole.fault.map(|fault| fault.to_string())
            }
            Err(none) => Some(none.error.clone()),
        };
        self.end(error);
    }
}

fn trying(above: TraceParent, method: &str, service: &Service, attempt: Attempt) -> Span {
    let context = attempt_below(above, attempt.number());
    let mut span =
        Span::new(above.trace, context.span, format!("{method} {}", service.name), SpanKind::Client);
    span.parent = Some(above.span);
    span.text("http.request.method", method);
    span.text("seawall.service", service.name.as_str());
    if attempt.number() > 1 {
        span.number("http.request.resend_count", i64::from(attempt.number()) - 1);
    }
    span
}

/// Tells of the attempts of a call that is passed on while it comes.
struct AttemptSpans {
    spans: Spans,
    context: TraceParent,
    method: String,
    service: Arc<Service>,
}

impl AttemptObserver for AttemptSpans {
    fn start(&self, attempt: Attempt) -> Box<dyn ObservedAttempt> {
        let open = self.spans.begin(|| Some(trying(self.context, &self.method, &self.service, attempt)));
        Box::new(AttemptSpan { open, status: None })
    }

    fn add_headers(&self, attempt: Attempt, headers: &mut HeaderMap) {
        if let Ok(told) = HeaderValue::try_from(attempt_below(self.context, attempt.number()).to_string()) {
            headers.insert(TRACEPARENT, told);
        }
    }
}

struct AttemptSpan {
    open: Option<OpenSpan>,
    status: Option<StatusCode>,
}

impl ObservedAttempt for AttemptSpan {
    fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
        if let Some(span) = self.open.as_mut().and_then(|open| open.span.as_mut()) {
            span.number("http.response.status_code", i64::from(status.as_u16()));
        }
    }

    fn ended(self: Box<Self>, error: Option<&HttpError>) {
        let AttemptSpan { open, status } = *self;
        let refused = status.filter(|status| status.is_client_error() || status.is_server_error());
        let error = error.map(ToString::to_string).or_else(|| refused.map(|status| status.to_string()));
        if let Some(open) = open {
            open.end(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-3: attempts have spans of their own.
    #[test]
    fn obs_3_each_attempt_has_its_own_span() {
        let context = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        let (first, second) = (attempt_below(context, 1), attempt_below(context, 2));
        assert!(first != second && first != context && first.trace == context.trace);
        assert_eq!(first, attempt_below(context, 1));
    }
}
