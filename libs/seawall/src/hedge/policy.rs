//! When hedges start, and what is learned from answers.

use std::fmt;
use std::time::Duration;

use super::config::{Delay, Hedge, SAMPLES_MIN};
use super::machine::{BUCKETS, bucket_of, longest_of, percentile};
use crate::config::ConfigError;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::versions::Versions;

/// When the hedges of a guard start, and how often they did and won.
pub struct Hedger {
    hedge: Versions<Hedge>,
    /// The durations of the recent answers.
    counts: [AtomicU32; BUCKETS],
    answers: AtomicU64,
    started: AtomicU64,
    won: AtomicU64,
}

/// After so many answers old ones weigh half, so that what is remembered is recent.
const FORGET_AT: u64 = 4_096;

impl Hedger {
    pub(crate) fn new(hedge: Hedge) -> Self {
        Hedger {
            hedge: Versions::new(hedge),
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
            answers: AtomicU64::new(0),
            started: AtomicU64::new(0),
            won: AtomicU64::new(0),
        }
    }

    /// The delay that a call would get now.
    #[must_use]
    pub fn delay(&self) -> Duration {
        match self.hedge.newest().delay {
            Delay::Fixed(delay) => delay,
            Delay::Percentile { share, until_known } => {
                if self.answers.load(Ordering::Acquire) < SAMPLES_MIN {
                    return until_known;
                }
                let counts = self.counts.iter().map(|count| u64::from(count.load(Ordering::Acquire)));
                percentile(counts, share.millionths())
                    .map_or(until_known, |bucket| Duration::from_nanos(longest_of(bucket)))
            }
        }
    }

    /// The number of hedges that were started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// The number of hedges that answered first.
    #[must_use]
    pub fn won(&self) -> u64 {
        self.won.load(Ordering::Relaxed)
    }

    /// The number of attempts that may start beside the first.
    pub(super) fn max_hedges(&self) -> u32 {
        self.hedge.newest().max_hedges
    }

    pub(super) fn has_started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn has_won(&self) {
        self.won.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn learn(&self, took: Duration) {
        if matches!(self.hedge.newest().delay, Delay::Fixed(_)) {
            return;
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanos)].fetch_add(1, Ordering::AcqRel);
        if self.answers.fetch_add(1, Ordering::AcqRel) + 1 >= FORGET_AT {
            // Whoever finds it full halves it; that two do so at once costs some memory of the past, and no more.
            self.answers.store(FORGET_AT / 2, Ordering::Release);
            for count in &self.counts {
                let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| Some(count / 2));
            }
        }
    }

    pub(crate) fn explain(&self) -> String {
        self.hedge.newest().to_string()
    }

    /// Changes when hedges start. What was learned about answers stays.
    pub(crate) fn reconfigure(&self, hedge: &Hedge) -> Result<(), ConfigError> {
        self.hedge.publish(|_| *hedge).map_err(|too_many| too_many.refusal("hedging", "hedge"))
    }
}

impl fmt::Debug for Hedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedger")
            .field("hedge", self.hedge.newest())
            .field("delay", &self.delay())
            .finish_non_exhaustive()
    }
}
