//! When a retry is allowed: plain arithmetic on whole numbers, so that nothing drifts.

use crate::stats::Slicing;

/// The settings that the arithmetic needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rules {
    Share(Share),
    Bucket(Bucket),
}

/// A share of the calls in a window, and a floor for those who call seldom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// Of first attempts: never longer than the window.
    pub(crate) slicing: Slicing,
    /// Of retries: never shorter than the window. Else what was spent would be forgotten a moment too early, and two bursts
    /// of retries would fall into one window of calls.
    pub(crate) retry_slicing: Slicing,
    /// In millionths.
    pub(crate) share: u64,
    pub(crate) floor: Option<Floor>,
}

impl Share {
    /// Whether one more retry is within the share.
    pub(crate) fn allows(&self, calls: u64, retries: u64) -> bool {
        (u128::from(retries) + 1) * 1_000_000 <= u128::from(calls) * u128::from(self.share)
    }

    /// The floor, if it applies to so many calls.
    pub(crate) fn floor_at(&self, calls: u64) -> Option<Floor> {
        self.floor.filter(|_| calls < FLOOR_BELOW_CALLS)
    }
}

/// The floor applies while the window holds fewer first attempts: from here on ten percent are ten retries, and are enough.
/// Many processes at a higher rate that share a peer would together break the bound by their floors.
pub(crate) const FLOOR_BELOW_CALLS: u64 = 100;

/// So many retries a second: a bucket with what one second brings, and room for one at least. All times in nanoseconds.
///
/// Only the due time is kept, as in the rate limiter: each retry moves it one interval on, and how far it is ahead of the
/// present is how much of the bucket is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Floor {
    interval: u64,
    burst: u64,
}

impl Floor {
    /// None for a rate of zero.
    pub(crate) fn new(per_second: f64) -> Option<Self> {
        // Longer than any process runs, and no sum of two overflows.
        let longest = 1_u64 << 61;
        let interval = ((1e9 / per_second).ceil() as u64).min(longest);
        let burst = interval.saturating_mul((per_second as u64).max(1)).min(longest);
        (per_second > 0.0).then_some(Floor { interval, burst })
    }

    /// The due time after one more retry, if there is one.
    pub(crate) fn take(&self, due: u64, now: u64) -> Option<u64> {
        let next = due.max(now).saturating_add(self.interval);
        (next - now <= self.burst).then_some(next)
    }

    pub(crate) fn give_back(&self, due: u64) -> u64 {
        due.saturating_sub(self.interval)
    }
}

/// A bucket in thousandths of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    pub(crate) max: u64,
    pub(crate) ratio: u64,
}

impl Bucket {
    pub(crate) fn after_success(&self, tokens: u64) -> u64 {
        tokens.saturating_add(self.ratio).min(self.max)
    }

    pub(crate) fn after_failure(tokens: u64) -> u64 {
        tokens.saturating_sub(1_000)
    }

    /// What is in it where `tokens` were in a bucket of another size. How full it is decides, so that is what stays.
    pub(crate) fn as_full_as(&self, other: Bucket, tokens: u64) -> u64 {
        let scaled = u128::from(tokens) * u128::from(self.max) / u128::from(other.max.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX).min(self.max)
    }

    pub(crate) fn allows(&self, tokens: u64) -> bool {
        tokens * 2 > self.max
    }
}
