//! When a retry is allowed: plain arithmetic on whole numbers, so that nothing drifts.

use std::time::Duration;

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
    /// How long a debt is remembered, in units.
    pub(crate) debt_lifetime: u64,
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

    /// Whether the share repays at so many calls what the floor has paid for: exactly where there is no floor.
    pub(crate) fn repays_at(calls: u64) -> bool {
        calls >= FLOOR_BELOW_CALLS
    }
}

/// The floor applies while the window holds fewer first attempts: from here on ten percent are ten retries, and are enough.
/// Many processes at a higher rate that share a peer would together break the bound by their floors.
pub(crate) const FLOOR_BELOW_CALLS: u64 = 100;

/// The floor: a bucket of retries that fills at a steady rate. It holds what one window brings, and one retry at least. All
/// times are in nanoseconds.
///
/// Only the due time is kept, as in the rate limiter: each retry moves it one interval on, and how far it is ahead of the
/// present is how much of the bucket is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Floor {
    interval: u64,
    burst: u64,
    /// The maximum number of retries at once.
    burst_retries: u64,
}

impl Floor {
    /// None for a rate of zero.
    pub(crate) fn new(per_second: f64, window: Duration) -> Option<Self> {
        // Longer than any process runs, and no sum of two overflows.
        let longest = 1_u64 << 61;
        // Rounded down, so that one second brings three retries of three a second, and not a nanosecond later.
        let interval = ((1e9 / per_second) as u64).min(longest);
        // A product that is a hair below a whole number is that number: 0.29 in 100 s are 29.
        let burst_retries = ((per_second * window.as_secs_f64() + 1e-6) as u64).max(1);
        let burst = interval.saturating_mul(burst_retries).min(longest);
        (per_second > 0.0).then_some(Floor { interval, burst, burst_retries })
    }

    /// The maximum number of retries that it pays for at once.
    pub(crate) fn burst_retries(&self) -> u64 {
        self.burst_retries
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

/// How many retries the floor has paid for that the share has not repaid yet, in one word: the count in the lower 24 bits,
/// and above it the time of the last such retry in 40 bits of units, which are 36 years.
///
/// Without it, processes that start in an outage would spend the whole floor first and the whole share afterwards, and
/// together break the bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Debt(u64);

impl Debt {
    const COUNT_BITS: u32 = 24;
    const COUNT_MAX: u64 = (1 << Self::COUNT_BITS) - 1;
    const TIME_MASK: u64 = (1 << (64 - Self::COUNT_BITS)) - 1;

    pub(crate) fn from_word(word: u64) -> Self {
        Debt(word)
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    fn pack(count: u64, last: u64) -> Self {
        Debt(((last & Self::TIME_MASK) << Self::COUNT_BITS) | count.min(Self::COUNT_MAX))
    }

    /// Whether a debt whose last retry was made at `last` is forgotten. Another thread may have read a later time than this
    /// one, and its debt is a new one.
    pub(crate) fn is_forgotten(last: u64, now: u64, lifetime: u64) -> bool {
        let age = now.wrapping_sub(last) & Self::TIME_MASK;
        (lifetime..=Self::TIME_MASK / 2).contains(&age)
    }

    /// How many retries are to be repaid now.
    pub(crate) fn count(self, now: u64, lifetime: u64) -> u64 {
        if Self::is_forgotten(self.last(), now, lifetime) { 0 } else { self.0 & Self::COUNT_MAX }
    }

    fn last(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    /// The debt after the floor has paid for one more retry: never more than what the floor pays for at once.
    pub(crate) fn after_floor_paid(self, now: u64, lifetime: u64, floor: Floor) -> Self {
        Self::pack((self.count(now, lifetime) + 1).min(floor.burst_retries()), now)
    }

    /// The debt after one retry was repaid or given back. None if there is no debt.
    pub(crate) fn after_repayment(self, now: u64, lifetime: u64) -> Option<Self> {
        let rest = self.count(now, lifetime).checked_sub(1)?;
        Some(Self::pack(rest, self.last()))
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
