//! What is counted, each in atomics.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{CounterFn, GaugeFn, HistogramFn, Unit};

/// How often something happened.
#[derive(Debug, Default)]
pub(super) struct Total(AtomicU64);

impl Total {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl CounterFn for Total {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}

/// How much of something there is: the bits of a number.
#[derive(Debug, Default)]
pub(super) struct Level(AtomicU64);

impl Level {
    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn change(&self, by: f64) {
        let changed = |bits| Some((f64::from_bits(bits) + by).to_bits());
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
    }
}

impl GaugeFn for Level {
    fn increment(&self, value: f64) {
        self.change(value);
    }

    fn decrement(&self, value: f64) {
        self.change(-value);
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// OpenTelemetry's bounds for seconds, and some below and above them: a disk answers sooner, and a peer later.
pub(super) const SECONDS: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5,
    5.0, 7.5, 10.0, 30.0, 60.0,
];
/// For anything that is counted.
const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// How large something was, counted by size.
#[derive(Debug)]
pub(super) struct Buckets {
    bounds: &'static [f64],
    /// One more than bounds.
    counts: Box<[AtomicU64]>,
    /// Whole numbers are added up: so many of them are one.
    scale: f64,
    sum: AtomicU64,
    max: AtomicU64,
}

/// A histogram at one moment, or several added up.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Snapshot {
    pub(super) bounds: &'static [f64],
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
    pub(super) max: f64,
}

impl Buckets {
    pub(super) fn of(unit: Option<Unit>) -> Self {
        let (bounds, scale) = match unit {
            Some(Unit::Seconds) | None => (SECONDS, 1e9),
            Some(_) => (COUNTS, 1.0),
        };
        Buckets {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            scale,
            sum: AtomicU64::new(0),
            max: AtomicU64::new(0),
        }
    }

    /// Adds what was counted, size by size.
    pub(super) fn add_to(&self, sums: &mut [u64]) {
        sums.iter_mut().zip(&self.counts).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let number = |cell: &AtomicU64| cell.load(Ordering::Relaxed) as f64 / self.scale;
        Snapshot {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: number(&self.sum),
            max: number(&self.max),
        }
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let scaled = (value * self.scale) as u64;
        self.sum.fetch_add(scaled, Ordering::Relaxed);
        // Mostly there is nothing to write.
        if scaled > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(scaled, Ordering::Relaxed);
        }
    }
}

impl Snapshot {
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Snapshot) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// A share of all is not larger than this, as far as the bounds tell; within a bucket all are taken as evenly spread.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let wanted = self.count() as f64 * share;
        let (mut below, mut from) = (0.0, 0.0);
        for (at, count) in self.counts.iter().map(|count| *count as f64).enumerate() {
            let to = self.bounds.get(at).map_or(self.max, |bound| bound.min(self.max));
            if count > 0.0 && below + count >= wanted {
                return from + (to - from).max(0.0) * ((wanted - below) / count).clamp(0.0, 1.0);
            }
            (below, from) = (below + count, to);
        }
        self.max
    }
}
