//! The last rejections of a guard.

use std::fmt;
use std::time::Duration;

use crate::clock::{Tick, millis_of_units, units};
use crate::error::Policy;
use crate::sync::{AtomicU64, Ordering};

/// So many are remembered.
const REMEMBERED: usize = 32;

/// A call that a policy refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Rejection {
    /// How long ago.
    pub ago: Duration,
    /// Who refused.
    pub by: Policy,
    /// When it said to come back, if it knew, to the millisecond.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ago: refused by the {}", self.ago, self.by)?;
        self.retry_after.map_or(Ok(()), |wait| write!(f, ", come back in {}", crate::clock::Rounded(wait)))
    }
}

/// A ring of words, because a guard refuses most when there is the least time for it.
///
/// A word holds the time (38 bits of about a millisecond: nine years), who refused (3), and when to come back (23: two
/// hours, then "later"). Zero is none. Of the rejections by one policy at one reading of the coarse clock the first is
/// remembered: a thousand of them tell no more than one, and the threads that are refused share nothing that is written.
pub(crate) struct Rejections {
    next: AtomicU64,
    /// Time and policy of the newest.
    newest: AtomicU64,
    words: [AtomicU64; REMEMBERED],
    made: Tick,
}

const WAIT_BITS: u32 = 23;
const POLICY_BITS: u32 = 3;
/// No time to come back is known.
const UNKNOWN: u64 = (1 << WAIT_BITS) - 1;

impl Rejections {
    pub(crate) fn new(now: Tick) -> Self {
        Rejections {
            next: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            made: now,
        }
    }

    #[inline]
    pub(crate) fn remember(&self, now: Tick, by: Policy, retry_after: Option<Duration>) {
        let newest = self.time(now) << POLICY_BITS | number_of(by);
        if self.newest.load(Ordering::Relaxed) != newest {
            self.write_down(newest, retry_after);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_down(&self, newest: u64, retry_after: Option<Duration>) {
        self.newest.store(newest, Ordering::Relaxed);
        let wait = retry_after.map_or(UNKNOWN, |wait| units(wait).min(UNKNOWN - 1));
        let at = self.next.fetch_add(1, Ordering::Relaxed) as usize % REMEMBERED;
        self.words[at].store(newest << WAIT_BITS | wait, Ordering::Relaxed);
    }

    /// One more than the time since it was made, so that no rejection is zero.
    #[inline]
    fn time(&self, now: Tick) -> u64 {
        now.as_units().saturating_sub(self.made.as_units()) + 1
    }

    /// The newest first.
    pub(crate) fn list(&self, now: Tick) -> Vec<Rejection> {
        let now = self.time(now);
        let mut words: Vec<u64> =
            self.words.iter().map(|word| word.load(Ordering::Relaxed)).filter(|&word| word != 0).collect();
        words.sort_unstable_by(|a, b| b.cmp(a));
        let rejection = |word: u64| {
            let time = word >> (WAIT_BITS + POLICY_BITS);
            let wait = word & UNKNOWN;
            Rejection {
                ago: millis_of_units(now.saturating_sub(time)),
                by: policy_of(word >> WAIT_BITS & ((1 << POLICY_BITS) - 1)),
                retry_after: (wait != UNKNOWN).then(|| millis_of_units(wait)),
            }
        };
        words.into_iter().map(rejection).collect()
    }
}

/// Only these refuse.
const REFUSERS: [Policy; 3] = [Policy::Breaker, Policy::RateLimit, Policy::Bulkhead];

fn number_of(policy: Policy) -> u64 {
    REFUSERS.iter().position(|&refuser| refuser == policy).unwrap_or(0) as u64
}

fn policy_of(number: u64) -> Policy {
    REFUSERS[number as usize % REFUSERS.len()]
}

impl fmt::Debug for Rejections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejections").field("so far", &self.next).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use crate::{millis, secs};

    /// ENG-13: the last rejections can be asked for with their reason, the newest first, and no more than fit.
    #[test]
    fn eng_13_the_last_rejections_are_there_the_newest_first() {
        let start = Tick::from_nanos(1 << 40);
        let rejections = Rejections::new(start);
        assert_eq!(rejections.list(start), []);
        rejections.remember(start, Policy::Breaker, Some(secs(30)));
        rejections.remember(start + secs(5), Policy::Bulkhead, None);
        rejections.remember(start + secs(6), Policy::RateLimit, Some(secs(1_000_000)));
        let list = rejections.list(start + secs(10));
        let seen: Vec<_> =
            list.iter().map(|one| (one.ago.as_secs_f64().round(), one.by, one.retry_after)).collect();
        assert_eq!(
            seen,
            [
                (4.0, Policy::RateLimit, Some(millis(8_796_091))),
                (5.0, Policy::Bulkhead, None),
                (10.0, Policy::Breaker, Some(secs(30))),
            ]
        );
        assert!(
            list[2].to_string().ends_with("ago: refused by the breaker, come back in 30s"),
            "{}",
            list[2]
        );
        for n in 0..100 {
            rejections.remember(start + secs(20 + n), Policy::Breaker, None);
        }
        let list = rejections.list(start + secs(119));
        assert_eq!(
            (list.len(), list[0].ago, list[31].ago.as_secs_f64().round()),
            (REMEMBERED, millis(0), 31.0)
        );
    }

    /// ENG-13: a storm of one kind leaves room for what came before it.
    #[test]
    fn eng_13_a_storm_of_rejections_is_one_of_its_kind() {
        let start = Tick::from_nanos(1 << 40);
        let rejections = Rejections::new(start);
        rejections.remember(start, Policy::Bulkhead, None);
        for _ in 0..1_000 {
            rejections.remember(start + secs(1), Policy::Breaker, None);
        }
        assert_eq!(rejections.list(start + secs(1)).len(), 2);
    }
}
