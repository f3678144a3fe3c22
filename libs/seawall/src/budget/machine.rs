//! When a retry is allowed: plain arithmetic on whole numbers, so that nothing drifts.

use crate::stats::Slicing;

/// The settings that the arithmetic needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rules {
    Share(Share),
    Bucket(Bucket),
}

/// A share of the calls in a window, plus a floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) slicing: Slicing,
    /// In millionths.
    pub(crate) share: u64,
    /// What the window always allows, in millionths of a retry.
    pub(crate) floor: u64,
}

impl Share {
    /// Whether one more retry is within the budget.
    pub(crate) fn allows(&self, calls: u64, retries: u64) -> bool {
        let earned = u128::from(calls) * u128::from(self.share) + u128::from(self.floor);
        (u128::from(retries) + 1) * 1_000_000 <= earned
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
