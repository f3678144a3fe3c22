//! How a request gets to a peer.

use std::future::Future;

use bytes::Bytes;
use seawall::{Attempt, Fault};
use seawall_dist::deadletter::SentRequest;

use crate::domain::delivery::DeliveryId;
use crate::domain::service::Service;
use crate::domain::time::Millis;
use crate::domain::trace::TraceId;
use crate::render::Request;

/// What a peer answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// How the answer is judged: nothing, if it is a good one.
    pub fault: Option<Fault>,
    /// Those headers that may be kept.
    pub headers: Vec<(String, String)>,
    /// The beginning of its body.
    pub body: Vec<u8>,
    /// What was sent, without credentials, if the answer is not a good one.
    pub sent: Option<SentRequest>,
}

/// What a peer answered, all of it: for whoever waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// The status.
    pub status: u16,
    /// How the answer is judged: nothing, if it is a good one.
    pub fault: Option<Fault>,
    /// Names in small letters and values, but for those about the connection.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its body.
    pub body: Bytes,
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
    /// Whether there was an answer, and it is larger than anybody wants to hold.
    pub too_large: bool,
    /// Whether there was an answer, and the hub had no memory left to hold it.
    pub no_memory: bool,
    /// What was sent, without credentials.
    pub sent: Option<SentRequest>,
}

/// What a peer is told of a delivery, so that it can tell a repetition and a replay.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// The delivery: the same for all its tries.
    pub delivery: DeliveryId,
    /// The event that it is about.
    pub event: &'a str,
    /// When that was accepted.
    pub event_accepted: Millis,
    /// The sends of this delivery, counted from 1.
    pub number: u32,
    /// The dead letter that it replays, if it does.
    pub replay_of: Option<DeliveryId>,
    /// The trace that the event belongs to.
    pub trace: Option<TraceId>,
}

/// How a request gets to a peer: one send, and nothing else. Who may send when is decided elsewhere.
pub trait Transport: Send + Sync + 'static {
    /// Sends a request once. `letter` is what it is about, unless it is about nothing but a test; `attempt` is what the guard
    /// says of this send.
    fn send(
        &self,
        service: &Service,
        request: &Request,
        letter: Option<Letter<'_>>,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Answer, NoAnswer>> + Send;

    /// As [`send`](Transport::send), about nothing but itself, for whoever waits for the whole answer. `trace` is the
    /// `traceparent` that it is below.
    fn call(
        &self,
        service: &Service,
        request: &Request,
        trace: Option<&str>,
        attempt: Attempt,
    ) -> impl Future<Output = Result<Whole, NoAnswer>> + Send;
}
