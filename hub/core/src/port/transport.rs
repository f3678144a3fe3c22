//! How a request gets to a peer.

use std::future::Future;

use seawall::{Attempt, Fault};

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
    /// Sends a request once. `number` counts the sends of this delivery from 1; `attempt` is what the guard says of this one.
    fn send(
        &self,
        service: &Service,
        request: &Request,
        delivery: DeliveryId,
        number: u32,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Answer, NoAnswer>> + Send;
}
