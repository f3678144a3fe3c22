//! How often something happened since the last look, and how long it took.
//!
//! What happens thousands of times a second has no line of its own in the log, but one for all of them each second. To say
//! how long they took costs one addition each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The maximum number of log lines of one kind in a second; the next one says how many were left out.
pub(in crate::service) const LINES_PER_SECOND: u32 = 20;

/// The number of buckets: four for each doubling, from a microsecond to more than a minute.
const STEPS: usize = 27 * 4;

/// Counts durations in buckets.
#[derive(Debug)]
pub(in crate::service) struct LatencyRecorder {
    counts: [AtomicU32; STEPS],
}

/// A summary of durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::service) struct LatencySummary {
    pub(in crate::service) count: u64,
    /// The median, rounded up by a quarter at most.
    pub(in crate::service) p50: Duration,
    /// The 99th percentile, rounded up by a quarter at most.
    pub(in crate::service) p99: Duration,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        LatencyRecorder { counts: std::array::from_fn(|_| AtomicU32::new(0)) }
    }
}

impl LatencyRecorder {
    pub(in crate::service) fn add(&self, took: Duration) {
        self.counts[step(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the summary since the last call; `None` if nothing was counted.
    pub(in crate::service) fn take(&self) -> Option<LatencySummary> {
        let counts = self.counts.each_ref().map(|count| u64::from(count.swap(0, Ordering::Relaxed)));
        let count: u64 = counts.iter().sum();
        let below = |share: u64| {
            let mut left = (count * share).div_ceil(100);
            let found = counts.iter().position(|here| {
                left = left.saturating_sub(*here);
                left == 0
            });
            upper(found.unwrap_or(STEPS - 1))
        };
        (count > 0).then(|| LatencySummary { count, p50: below(50), p99: below(99) })
    }
}

fn step(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let doubling = micros.ilog2();
    let quarter = if doubling >= 2 { (micros >> (doubling - 2)) & 3 } else { (micros << (2 - doubling)) & 3 };
    (doubling as usize * 4 + quarter as usize).min(STEPS - 1)
}

fn upper(step: usize) -> Duration {
    let (doubling, quarter) = (step / 4, step as u64 % 4);
    Duration::from_nanos(((5 + quarter) * 1_000) << doubling >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-1: what is told of a second is how often, and how long within a quarter.
    #[test]
    fn obs_1_a_pace_is_within_a_quarter() {
        let latency = LatencyRecorder::default();
        assert_eq!(latency.take(), None);
        for micros in 1..=10_000 {
            latency.add(Duration::from_micros(micros));
        }
        let LatencySummary { count, p50, p99 } = latency.take().unwrap();
        assert_eq!(count, 10_000);
        for (found, exact) in [(p50, 5_000_f64), (p99, 9_900.0)] {
            let share = found.as_secs_f64() * 1e6 / exact;
            assert!((1.0..1.25).contains(&share), "{found:?} for {exact} µs");
        }
        assert_eq!(latency.take(), None, "it starts at zero");
        latency.add(Duration::from_secs(1_000_000));
        latency.add(Duration::ZERO);
        assert_eq!(latency.take().unwrap().count, 2);
    }
}
