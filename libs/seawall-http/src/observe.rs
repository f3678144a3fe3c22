//! Observers of attempts: for traces, in which each attempt is a span and the peer gets its id.

use http::{HeaderMap, StatusCode};
use seawall::Attempt;

use crate::error::HttpError;

/// Observes every attempt of a request that is [held](crate::HttpClient::hold).
pub trait AttemptObserver: Send + Sync {
    /// Is called when an attempt begins, and returns the observer of that attempt.
    fn start(&self, attempt: Attempt) -> Box<dyn ObservedAttempt>;

    /// Adds headers to the request of this attempt. The client may call it more than once, if the first connection refuses the
    /// request; it must add the same headers each time.
    fn add_headers(&self, attempt: Attempt, headers: &mut HeaderMap);
}

/// Observes one attempt. The client drops it without [`ended`](ObservedAttempt::ended) if it gives the attempt up.
pub trait ObservedAttempt: Send {
    /// Is called when the headers of the response have arrived.
    fn answered(&mut self, status: StatusCode);

    /// Is called when the attempt is over, including the body of the response.
    fn ended(self: Box<Self>, error: Option<&HttpError>);
}
