//! How a request gets to a peer.

use std::future::Future;
use std::time::Duration;

use seawall::Fault;

use crate::domain::delivery::DeliveryId;
use crate::domain::service::Service;
use crate::render::Request;

/// What a peer answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How the answer is judged: nothing, if it is a good one.
    pub fault: Option<Fault>,
    /// The beginning of its body.
    pub body: Vec<u8>,
}

/// Why there was no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoAnswer {
    /// How that is judged.
    pub fault: Fault,
    /// In words, without secrets.
    pub error: String,
    /// Whether it can never be sent: forbidden, or no request at all.
    pub impossible: bool,
}

/// How a request gets to a peer: one send, and nothing else. Who may send when is decided elsewhere.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request once. `attempt` counts from 1; `time` is what is left for it.
    fn send(
        &self,
        service: &Service,
        request: &Request,
        delivery: DeliveryId,
        attempt: u32,
        time: Option<Duration>,
    ) -> impl Future<Output = Result<Answer, NoAnswer>> + Send;
}
