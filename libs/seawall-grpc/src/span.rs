//! A span around each attempt, so that what the transport below does is found under it.

#[cfg(any(feature = "metrics", feature = "tracing"))]
use seawall::fault::Grpc;
use tonic::Code;
#[cfg(feature = "tracing")]
use tracing::{Span, field, info_span, span::Entered};

/// The span of an attempt. Dropping it without an end means that nobody waited for one.
#[derive(Debug)]
pub(crate) struct AttemptSpan {
    #[cfg(feature = "tracing")]
    span: Option<Span>,
}

/// The name of a status on the wire.
#[cfg(any(feature = "metrics", feature = "tracing"))]
pub(crate) fn name(code: Code) -> &'static str {
    Grpc::from_number(code as i32).map_or("OK", Grpc::name)
}

#[cfg(feature = "tracing")]
impl AttemptSpan {
    pub(crate) fn start(method: &str, attempt: u32) -> Self {
        let span = info_span!(
            target: "seawall",
            "rpc.attempt",
            rpc.system = "grpc",
            rpc.method = method.trim_start_matches('/'),
            attempt,
            rpc.response.status_code = field::Empty,
        );
        AttemptSpan { span: (!span.is_disabled()).then_some(span) }
    }

    /// The span is the current one while the result lives: within one poll.
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        self.span.as_ref().map(Span::enter)
    }

    pub(crate) fn end(&mut self, code: Code) {
        if let Some(span) = self.span.take() {
            span.record("rpc.response.status_code", name(code));
        }
    }
}

#[cfg(feature = "tracing")]
impl Drop for AttemptSpan {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "there is a span with the feature `tracing`")]
impl AttemptSpan {
    pub(crate) fn start(_: &str, _: u32) -> Self {
        AttemptSpan {}
    }

    pub(crate) fn enter(&self) -> Option<()> {
        None
    }

    pub(crate) fn end(&mut self, _: Code) {}
}
