//! How long an attempt waits, as a function of plain times.

use std::time::Duration;

/// How long one attempt to take the lock may take: until the first renewal would be due, and never longer than `longest`.
pub(super) fn attempt_limit(lease: Duration, longest: Duration) -> Duration {
    (lease / 3).min(longest)
}

/// Whether the time limit of a store's own requests is short enough for an attempt: half of the lease is left then, at least.
pub(super) fn is_short(request_timeout: Option<Duration>, lease: Duration) -> bool {
    request_timeout.is_some_and(|timeout| timeout <= lease / 2)
}

/// The wait after a failed attempt: evenly between half of the delay and the delay.
pub(super) fn jittered(delay: Duration, fraction: f64) -> Duration {
    delay.mul_f64(0.5 + fraction / 2.0)
}
