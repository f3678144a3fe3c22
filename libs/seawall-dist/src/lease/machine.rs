//! How long a lease is valid, and when it is renewed, as functions of plain times.

use std::time::Duration;

/// The lengths that follow from the length of a lease. Times are counted from the origin of one clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timetable {
    /// The length that the store was asked for.
    pub(crate) lease: Duration,
    /// How much faster the store's clock may run.
    pub(crate) drift: Duration,
    /// The work is cancelled this long before the lease ends, because the scheduler may be late.
    pub(crate) margin: Duration,
}

impl Timetable {
    pub(crate) fn new(lease: Duration, drift: Duration) -> Self {
        Timetable { lease, drift, margin: lease / 10 }
    }

    /// When a lease ends whose last successful request *started* then. The store may have begun to count at any moment
    /// between the start of the request and its answer, so only the start is safe.
    pub(crate) fn valid_until(&self, started: Duration) -> Duration {
        (started + self.lease).saturating_sub(self.drift)
    }

    /// When the work is cancelled, unless a renewal succeeds before.
    pub(crate) fn cancel_at(&self, started: Duration) -> Duration {
        self.valid_until(started).saturating_sub(self.margin)
    }

    /// When the lease is renewed: after a third, so that one renewal may fail and the next still comes in time.
    pub(crate) fn renew_at(&self, started: Duration) -> Duration {
        started + self.lease / 3
    }

    /// How long one renewal may take before it is given up and the next begins.
    pub(crate) fn renewal_limit(&self) -> Duration {
        self.lease / 3
    }

    /// When a renewal that failed is repeated.
    pub(crate) fn repeat_at(&self, now: Duration) -> Duration {
        now + self.lease / 15
    }
}
