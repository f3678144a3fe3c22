//! The port that sends requests to services.

use std::future::Future;

use bytes::Bytes;
use seawall::{Attempt, Fault};
use seawall_dist::deadletter::SentRequest;

use crate::domain::delivery::DeliveryId;
use crate::domain::service::Service;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;
use crate::render::RenderedRequest;

/// The response of a service to a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerResponse {
    /// The number that the protocol of the service answers with, like the HTTP status; `None` if the protocol has none.
    pub code: Option<u16>,
    /// The fault of the response; `None` means success.
    pub fault: Option<Fault>,
    /// The names and values that came with the body and may be stored, like HTTP headers.
    pub attributes: Vec<(String, String)>,
    /// The beginning of the body.
    pub body: Vec<u8>,
    /// The request as it was sent, without credentials; `None` after a success.
    pub sent: Option<SentRequest>,
}

/// The whole response of a service, for a caller who waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FullResponse {
    /// The status of the response.
    pub status: u16,
    /// The fault of the response; `None` means success.
    pub fault: Option<Fault>,
    /// The headers without those of the connection, with names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
}

/// The reason why there is no response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SendError {
    /// The class of the failure.
    pub fault: Fault,
    /// The error message, without secrets.
    pub error: String,
    /// Whether the request can never be sent: the target is forbidden or the request is invalid.
    pub impossible: bool,
    /// Whether there was a response that exceeds the size limit.
    pub too_large: bool,
    /// Whether there was a response and the hub had no memory left for it.
    pub no_memory: bool,
    /// The request as it was sent, without credentials.
    pub sent: Option<SentRequest>,
}

/// What the headers of a request say about its delivery, so that the receiver can recognise retries and replays.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryHeaders<'a> {
    /// The id of the delivery, the same for all its attempts.
    pub delivery: DeliveryId,
    /// The id of the event.
    pub event: &'a str,
    /// When the event was accepted.
    pub event_accepted: Millis,
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The dead letter that it replays; `None` if it is no replay.
    pub replay_of: Option<DeliveryId>,
    /// The trace that the event belongs to.
    pub trace: Option<TraceId>,
}

/// The port that sends a request to a service, once. Whether and when to send is decided elsewhere.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request once. `headers` describe its delivery and is `None` for a test; `attempt` is what the guard says about
    /// this attempt.
    fn send(
        &self,
        service: &Service,
        request: &RenderedRequest,
        headers: Option<DeliveryHeaders<'_>>,
        attempt: Attempt,
    ) -> impl Future<Output = Result<PeerResponse, SendError>> + Send;

    /// Sends a request like [`send`](Transport::send), without a delivery, and returns the whole response. `trace` is the parent
    /// `traceparent`.
    fn call(
        &self,
        service: &Service,
        request: &RenderedRequest,
        trace: Option<&str>,
        attempt: Attempt,
    ) -> impl Future<Output = Result<FullResponse, SendError>> + Send;
}
