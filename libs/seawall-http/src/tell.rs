//! Who is told of attempts: for traces, where each attempt is a span and the peer is told which.

use http::{HeaderMap, StatusCode};
use seawall::Attempt;

use crate::error::HttpError;

/// Is told of every attempt of a request that is [held](crate::HttpClient::hold).
pub trait Tell: Send + Sync {
    /// An attempt begins.
    fn begins(&self, attempt: Attempt) -> Box<dyn Told>;

    /// These headers are sent with it. Asked more than once if the first connection does not take it; the answer is the same.
    fn mark(&self, attempt: Attempt, headers: &mut HeaderMap);
}

/// One attempt. If it is dropped before it has ended, it was given up.
pub trait Told: Send {
    /// The headers of its answer have come.
    fn answered(&mut self, status: StatusCode);

    /// It is over, its body too.
    fn ended(self: Box<Self>, error: Option<&HttpError>);
}
