//! The calls that a rate is taken of.

use super::config::Window as Shape;
use super::settings::Settings;
use crate::clock::Unit;
use crate::stats::{Mark, Ring, Slices, Slicing, Stripes, Tally};
use crate::sync::{AtomicU64, Ordering};

/// The memory of a circuit that opens by a rate.
#[derive(Debug)]
pub(super) enum Window {
    /// Failures in a row are counted in the word itself.
    None,
    Calls(Ring),
    Time(Box<TimeWindow>),
}

/// Successes are counted per thread, failures and slow calls in common: a rate only rises by one of these, so
/// only they have to add everything up.
#[derive(Debug)]
pub(super) struct TimeWindow {
    slicing: Slicing,
    good: Stripes,
    failed: Slices,
    slow: Slices,
    /// Both slow and failed, which the other two count twice.
    both: Slices,
    /// The phase in which a failure found fewer calls than the minimum. Only then can a success be what opens
    /// the circuit: it is the one that makes the rate count.
    starved: AtomicU64,
}

impl Window {
    pub(super) fn new(shape: Option<Shape>) -> Self {
        match shape {
            None => Window::None,
            Some(Shape::Calls(calls)) => Window::Calls(Ring::new(calls)),
            Some(Shape::Time(time)) => Window::Time(Box::new(TimeWindow {
                slicing: Slicing::of(time),
                good: Stripes::new(),
                failed: Slices::new(),
                slow: Slices::new(),
                both: Slices::new(),
                starved: AtomicU64::new(0),
            })),
        }
    }

    /// Whether it has the shape that these settings ask for.
    pub(super) fn fits(&self, shape: Option<Shape>) -> bool {
        match (self, shape) {
            (Window::None, None) => true,
            (Window::Calls(ring), Some(Shape::Calls(calls))) => ring.size() == calls,
            (Window::Time(window), Some(Shape::Time(time))) => window.slicing == Slicing::of(time),
            _ => false,
        }
    }

    /// What it holds of this phase.
    pub(super) fn tally(&self, phase: u64, now: Unit) -> Tally {
        match self {
            Window::None => Tally::default(),
            Window::Calls(ring) => ring.tally(phase),
            Window::Time(window) => window.tally(phase, now),
        }
    }
}

impl TimeWindow {
    /// Records an outcome and says whether it is enough to open.
    #[inline]
    pub(super) fn record(&self, mark: Mark, phase: u64, now: Unit, settings: &Settings) -> bool {
        if mark.is_good() {
            self.good.add(self.slicing, now, phase);
            if self.starved.load(Ordering::SeqCst) != phase {
                return false;
            }
        } else {
            self.record_bad(mark, phase, now);
        }
        self.judge(phase, now, settings)
    }

    #[cold]
    fn record_bad(&self, mark: Mark, phase: u64, now: Unit) {
        if mark.failed {
            self.failed.add(self.slicing, now, phase);
        }
        if mark.slow {
            self.slow.add(self.slicing, now, phase);
        }
        if mark.failed && mark.slow {
            self.both.add(self.slicing, now, phase);
        }
    }

    #[cold]
    fn judge(&self, phase: u64, now: Unit, settings: &Settings) -> bool {
        // Said before anything is added up, and both sides sequentially consistent: a success beside us is either in our
        // sum, or sees that it has to judge for itself.
        self.starved.store(phase, Ordering::SeqCst);
        let tally = self.tally(phase, now);
        if tally.calls >= settings.minimum_calls || tally.failures + tally.slow == 0 {
            self.starved.store(0, Ordering::SeqCst);
        }
        is_enough(tally, settings)
    }

    fn tally(&self, phase: u64, now: Unit) -> Tally {
        let sum = |slices: &Slices| slices.sum(self.slicing, now, phase);
        let (failures, slow, both) = (sum(&self.failed), sum(&self.slow), sum(&self.both));
        let bad = (failures + slow).saturating_sub(both);
        Tally { calls: self.good.sum(self.slicing, now, phase) + bad, failures, slow }
    }
}

/// Whether these calls open a circuit.
pub(super) fn is_enough(tally: Tally, settings: &Settings) -> bool {
    let reaches = |bad: u64, rate: u64| bad > 0 && bad * 1_000_000 >= rate * tally.calls;
    tally.calls >= settings.minimum_calls
        && (reaches(tally.failures, settings.failure_rate)
            || settings.slow_rate.is_some_and(|rate| reaches(tally.slow, rate)))
}
