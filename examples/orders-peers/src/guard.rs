//! What protects one upstream: the breaker of failsafe, the retries of backon and the timeouts of tokio, put together by hand.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use failsafe::failure_policy::{self, ConsecutiveFailures};
use failsafe::futures::CircuitBreaker;
use failsafe::{StateMachine, backoff};
use reqwest::StatusCode;
use tokio::time::timeout;

/// The three ways in which a call fails.
#[derive(Debug)]
pub enum CallError {
    /// The client's error.
    Http(reqwest::Error),
    /// An attempt or the whole call took too long.
    TimedOut,
    /// The circuit is open.
    Rejected,
}

impl CallError {
    /// Whether asking again may help, for operations that may run twice. It is also what counts against the peer.
    fn is_transient(&self) -> bool {
        let CallError::Http(error) = self else { return matches!(self, CallError::TimedOut) };
        match error.status() {
            Some(status) => {
                status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
                    || status == StatusCode::TOO_MANY_REQUESTS
                    || status == StatusCode::REQUEST_TIMEOUT
            }
            None => !error.is_builder() && !error.is_redirect() && !error.is_decode(),
        }
    }

    /// Whether somebody else may have a better answer.
    pub fn is_outage(&self) -> bool {
        matches!(self, CallError::Rejected) || self.is_transient()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Http(error) => error.fmt(f),
            CallError::TimedOut => f.write_str("timed out"),
            CallError::Rejected => f.write_str("the circuit is open"),
        }
    }
}

/// Around one upstream. Clones share the breaker.
#[derive(Clone)]
pub struct Guard {
    breaker: StateMachine<ConsecutiveFailures<backoff::Constant>, ()>,
    max_attempts: usize,
    attempt_timeout: Duration,
    call_timeout: Duration,
}

impl Guard {
    pub fn new(max_attempts: usize, attempt_timeout: Duration, call_timeout: Duration) -> Self {
        let cooldown = backoff::constant(Duration::from_secs(30));
        let policy = failure_policy::consecutive_failures(5, cooldown);
        let breaker = failsafe::Config::new().failure_policy(policy).build();
        Guard { breaker, max_attempts, attempt_timeout, call_timeout }
    }

    /// Three attempts of a second each.
    pub fn standard() -> Self {
        Guard::new(3, Duration::from_secs(1), Duration::from_secs(3))
    }

    /// One attempt: the breaker around the timeout around the operation.
    pub async fn attempt<T>(
        &self,
        operation: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, CallError> {
        let limited = async {
            let result = timeout(self.attempt_timeout, operation).await;
            result.map_err(|_| CallError::TimedOut)?.map_err(CallError::Http)
        };
        self.breaker.call_with(CallError::is_transient, limited).await.map_err(|error| match error {
            failsafe::Error::Inner(error) => error,
            failsafe::Error::Rejected => CallError::Rejected,
        })
    }

    /// Attempts until one succeeds. Only for operations that may run twice.
    pub async fn call<T, F>(&self, mut operation: impl FnMut() -> F) -> Result<T, CallError>
    where
        F: Future<Output = reqwest::Result<T>>,
    {
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(50))
            .with_max_delay(Duration::from_millis(500))
            .with_max_times(self.max_attempts - 1)
            .with_jitter();
        let retried = (|| self.attempt(operation())).retry(backoff).when(CallError::is_transient);
        timeout(self.call_timeout, retried).await.unwrap_or(Err(CallError::TimedOut))
    }
}
