//! A token bucket in one word: the time at which the bucket would be full of calls again if none came.
//!
//! (Known as the generic cell rate algorithm.) Instead of a count of tokens and the time of the last refill, only the
//! *due time* of the next call is kept: each call moves it one interval on, time catches up with it, and how far it is
//! ahead of the present is how much of the burst is spent. One word, no rounding between two words, no drift.

use std::time::Duration;

/// The settings, in sixteenths of a nanosecond: fine enough that three million calls a second are counted to a part in
/// eight thousand, and coarse enough that a word lasts for 36 years.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// Between two calls. Rounded up, so that the limit is never exceeded.
    interval: u64,
    /// How far the due time may be ahead of the present.
    burst: u64,
}

const SUB_BITS: u32 = 4;

impl Rules {
    pub(crate) fn new(calls: u32, period: Duration, burst: u32) -> Self {
        let period = period.as_nanos() << SUB_BITS;
        let interval = period.div_ceil(u128::from(calls.max(1)));
        let burst = interval * u128::from(burst.max(1));
        let word = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        // A burst of years is no limit; an eighth of the scale leaves room to add.
        Rules { interval: word(interval).min(1 << 61), burst: word(burst).min(1 << 61) }
    }

    /// How many calls may come at once after a pause.
    pub(crate) fn burst_calls(&self) -> u32 {
        u32::try_from(self.burst / self.interval.max(1)).unwrap_or(u32::MAX)
    }

    /// Between two calls, in nanoseconds.
    #[cfg(test)]
    pub(crate) fn interval_nanos(&self) -> u64 {
        self.interval >> SUB_BITS
    }
}

/// What a call gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It may pass now.
    Now,
    /// Its turn comes after so many nanoseconds.
    After(u64),
}

/// The due time after so many more calls at `now` (in nanoseconds), and when they may pass. They are no more than the burst.
#[inline]
pub(crate) fn take(due: u64, now: u64, calls: u32, rules: &Rules) -> (u64, Turn) {
    let now = now << SUB_BITS;
    // Neither comes round: the present is below 2⁶³ for eighteen years, and the due time ahead of it by the burst and a wait.
    // Saying so saves a step between the clock and the swap, and the swap is what a caller waits for.
    let next = due.max(now).wrapping_add(rules.interval * u64::from(calls));
    let ahead = next.wrapping_sub(now);
    let turn = if ahead <= rules.burst {
        Turn::Now
    } else {
        Turn::After((ahead - rules.burst).div_ceil(1 << SUB_BITS))
    };
    (next, turn)
}

/// The due time under new rules: as many calls are spent as under the old ones, but no more than the new burst holds, and as
/// many wait for their turn. Taken over as it is, a second of the old rules would be a second of the new: a rate that is
/// raised would stand still, and one that is lowered would have its burst again.
pub(crate) fn convert(due: u64, now: u64, old: &Rules, new: &Rules) -> u64 {
    let now = now << SUB_BITS;
    let ahead = due.saturating_sub(now);
    let convert = |time: u64| {
        let calls_times_new = u128::from(time) * u128::from(new.interval);
        u64::try_from(calls_times_new / u128::from(old.interval.max(1))).unwrap_or(u64::MAX).min(1 << 61)
    };
    let spent = convert(ahead.min(old.burst)).min(new.burst);
    let waiting = convert(ahead.saturating_sub(old.burst));
    now + spent + waiting
}

/// The due time after calls that were taken are given back.
pub(crate) fn give_back(due: u64, calls: u32, rules: &Rules) -> u64 {
    due.saturating_sub(rules.interval.saturating_mul(u64::from(calls)))
}
