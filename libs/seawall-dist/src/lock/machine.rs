//! How long a lease is valid, and when it is renewed, as functions of plain times.

use std::time::Duration;

use super::ATTEMPT_LIMIT;

/// The lengths that follow from the length of a lease. Times are counted from the origin of one clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timetable {
    /// The length that the store was asked for.
    pub(super) lease: Duration,
    /// How much faster the store's clock may run.
    pub(super) drift: Duration,
    /// The work is cancelled this long before the lease ends, because the scheduler may be late.
    pub(super) margin: Duration,
}

impl Timetable {
    pub(super) fn new(lease: Duration, drift: Duration) -> Self {
        Timetable { lease, drift, margin: lease / 10 }
    }

    /// When a lease ends whose last successful request *started* then. The store may have begun to count at any moment
    /// between the start of the request and its answer, so only the start is safe.
    pub(super) fn valid_until(&self, started: Duration) -> Duration {
        (started + self.lease).saturating_sub(self.drift)
    }

    /// When the work is cancelled, unless a renewal succeeds before.
    pub(super) fn cancel_at(&self, started: Duration) -> Duration {
        self.valid_until(started).saturating_sub(self.margin)
    }

    /// When the lease is renewed: after a third, so that one renewal may fail and the next still comes in time.
    pub(super) fn renew_at(&self, started: Duration) -> Duration {
        started + self.lease / 3
    }

    /// How long one attempt to take the lock may take: until the first renewal would be due, and never longer than a caller
    /// should wait for a store that hangs.
    pub(super) fn attempt_limit(&self) -> Duration {
        (self.lease / 3).min(ATTEMPT_LIMIT)
    }

    /// How long one renewal may take before it is given up and the next begins.
    pub(super) fn renewal_limit(&self) -> Duration {
        self.lease / 3
    }

    /// When a renewal that failed is repeated.
    pub(super) fn repeat_at(&self, now: Duration) -> Duration {
        now + self.lease / 15
    }
}

/// The wait after a failed attempt: evenly between half of the delay and the delay.
pub(super) fn jittered(delay: Duration, fraction: f64) -> Duration {
    delay.mul_f64(0.5 + fraction / 2.0)
}
