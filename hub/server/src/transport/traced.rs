//! Attempts as spans of a trace.

use seawall::Attempt;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::transport::{DeliveryHeaders, FullResponse, PeerResponse, SendError, Transport};
use seawall_hub_core::render::RenderedRequest;

use crate::spans::Spans;

/// A transport whose attempts are exported as spans.
#[derive(Clone, Debug)]
pub struct TracedTransport<T> {
    inner: T,
    spans: Spans,
}

impl<T> TracedTransport<T> {
    pub(crate) fn new(inner: T, spans: Spans) -> Self {
        TracedTransport { inner, spans }
    }
}

impl<T: Transport> Transport for TracedTransport<T> {
    async fn send(
        &self,
        service: &Service,
        request: &RenderedRequest,
        letter: Option<DeliveryHeaders<'_>>,
        attempt: Attempt,
    ) -> Result<PeerResponse, SendError> {
        let span = letter.and_then(|letter| self.spans.attempt(service, request, letter));
        let sent = self.inner.send(service, request, letter, attempt).await;
        if let Some(span) = span {
            span.answered(&sent);
        }
        sent
    }

    async fn call(
        &self,
        service: &Service,
        request: &RenderedRequest,
        trace: Option<&str>,
        attempt: Attempt,
    ) -> Result<FullResponse, SendError> {
        let (span, below) = self.spans.try_of(trace, (&request.operation, service), attempt);
        let called = self.inner.call(service, request, below.as_deref(), attempt).await;
        if let Some(span) = span {
            span.called(&called);
        }
        called
    }
}
