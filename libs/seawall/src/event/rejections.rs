//! The last rejections of a guard.

use std::fmt;
use std::time::Duration;

use crate::clock::Tick;
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
        self.retry_after.map_or(Ok(()), |wait| write!(f, ", come back in {wait:?}"))
    }
}

/// A ring of words, because a guard refuses most when there is the least time for it: writing one down is two plain
/// instructions and no lock.
///
/// A word holds the time in milliseconds (38 bits: nine years), who refused (3), and when to come back in milliseconds
/// (23: two hours, then "later"). Zero is none.
pub(crate) struct Rejections {
    next: AtomicU64,
    words: [AtomicU64; REMEMBERED],
    made: Tick,
}

const WAIT_BITS: u32 = 23;
const POLICY_BITS: u32 = 3;
/// No time to come back is known.
const UNKNOWN: u64 = (1 << WAIT_BITS) - 1;

impl Rejections {
    pub(crate) fn new(now: Tick) -> Self {
        Rejections { next: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)), made: now }
    }

    pub(crate) fn remember(&self, now: Tick, by: Policy, retry_after: Option<Duration>) {
        let wait = retry_after
            .map_or(UNKNOWN, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(UNKNOWN - 1));
        // One more, so that no rejection is zero.
        let time = now.since(self.made).as_millis() as u64 + 1;
        let word = time << (WAIT_BITS + POLICY_BITS) | number_of(by) << WAIT_BITS | wait;
        let at = self.next.fetch_add(1, Ordering::Relaxed) as usize % REMEMBERED;
        self.words[at].store(word, Ordering::Relaxed);
    }

    /// The newest first.
    pub(crate) fn list(&self, now: Tick) -> Vec<Rejection> {
        let now = now.since(self.made).as_millis() as u64 + 1;
        let mut words: Vec<u64> =
            self.words.iter().map(|word| word.load(Ordering::Relaxed)).filter(|&word| word != 0).collect();
        words.sort_unstable_by(|a, b| b.cmp(a));
        let rejection = |word: u64| {
            let time = word >> (WAIT_BITS + POLICY_BITS);
            let wait = word & UNKNOWN;
            Rejection {
                ago: Duration::from_millis(now.saturating_sub(time)),
                by: policy_of(word >> WAIT_BITS & ((1 << POLICY_BITS) - 1)),
                retry_after: (wait != UNKNOWN).then(|| Duration::from_millis(wait)),
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
        let start = Tick::from_nanos(77);
        let rejections = Rejections::new(start);
        assert_eq!(rejections.list(start), []);
        rejections.remember(start, Policy::Breaker, Some(secs(30)));
        rejections.remember(start + millis(5), Policy::Bulkhead, None);
        rejections.remember(start + millis(6), Policy::RateLimit, Some(secs(1_000_000)));
        let list = rejections.list(start + millis(10));
        let seen: Vec<_> = list.iter().map(|one| (one.ago, one.by, one.retry_after)).collect();
        assert_eq!(
            seen,
            [
                (millis(4), Policy::RateLimit, Some(millis((1 << 23) - 2))),
                (millis(5), Policy::Bulkhead, None),
                (millis(10), Policy::Breaker, Some(secs(30))),
            ]
        );
        assert_eq!(list[2].to_string(), "10ms ago: refused by the breaker, come back in 30s");
        for n in 0..100 {
            rejections.remember(start + millis(20 + n), Policy::Breaker, None);
        }
        let list = rejections.list(start + millis(119));
        assert_eq!((list.len(), list[0].ago, list[31].ago), (REMEMBERED, millis(0), millis(31)));
    }
}
