//! Retry and hedging policies as plain values.

use std::time::Duration;

/// The policy of a method: at most one of the two that gRPC has.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub enum CallPolicy {
    /// One attempt. Only what the server's application never saw is sent again.
    #[default]
    None,
    /// An attempt that fails with a retryable status is repeated after a pause.
    Retry(RetryPolicy),
    /// Several attempts run at the same time, and the first response wins.
    Hedging(HedgingPolicy),
}

/// `retryPolicy` of a service config.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of attempts, the first one included.
    pub max_attempts: u32,
    /// The pause before the first retry, before jitter.
    pub initial_backoff: Duration,
    /// The longest pause, before jitter.
    pub max_backoff: Duration,
    /// What each pause is multiplied with to get the next one.
    pub backoff_multiplier: f64,
    /// The statuses that are retried.
    pub retryable: StatusCodes,
}

/// `hedgingPolicy` of a service config.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct HedgingPolicy {
    /// The maximum number of attempts, the first one included.
    pub max_attempts: u32,
    /// The pause between two attempts while none has failed. With zero all attempts are sent at once.
    pub delay: Duration,
    /// The statuses after which the other attempts may still succeed.
    pub non_fatal: StatusCodes,
}

/// A set of gRPC status codes, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusCodes(u32);

impl StatusCodes {
    /// Whether the code with this number is in the set.
    #[must_use]
    pub fn contains(self, code: i32) -> bool {
        u32::try_from(code).is_ok_and(|code| code < u32::BITS && self.0 & (1 << code) != 0)
    }

    /// Whether the set has no code.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn insert(&mut self, code: i32) {
        if let Ok(code @ 0..32) = u32::try_from(code) {
            self.0 |= 1 << code;
        }
    }
}

impl CallPolicy {
    /// The same policy with at most so many attempts.
    pub(crate) fn capped(mut self, attempts_max: u32) -> Self {
        match &mut self {
            CallPolicy::None => {}
            CallPolicy::Retry(retry) => retry.max_attempts = retry.max_attempts.min(attempts_max),
            CallPolicy::Hedging(hedging) => hedging.max_attempts = hedging.max_attempts.min(attempts_max),
        }
        self
    }

    /// Whether another attempt may help after this status.
    pub(crate) fn allows(&self, code: i32) -> bool {
        match self {
            CallPolicy::None => false,
            CallPolicy::Retry(retry) => retry.retryable.contains(code),
            CallPolicy::Hedging(hedging) => hedging.non_fatal.contains(code),
        }
    }
}
