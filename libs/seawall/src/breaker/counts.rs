//! What happened to a circuit so far.

use super::word::Place;
use crate::sync::{AtomicU64, Ordering};

/// What happened to a circuit so far, but for what passed without remark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// How often it opened.
    pub opened: u64,
    /// How often it became half-open.
    pub half_opened: u64,
    /// How often it closed.
    pub closed: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Tickets that came back after the circuit had moved on, and changed nothing.
    pub late: u64,
    /// Calls that took longer than the threshold for slow ones.
    pub slow: u64,
    /// Tickets that were dropped without an outcome.
    pub abandoned: u64,
    /// Tickets that a panic dropped; each is a failure.
    pub panicked: u64,
}

/// The same, counted by many threads.
#[derive(Debug)]
pub(super) struct Counters {
    opened: AtomicU64,
    half_opened: AtomicU64,
    closed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) late: AtomicU64,
    pub(super) slow: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) panicked: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Counters {
            opened: zero(),
            half_opened: zero(),
            closed: zero(),
            refused: zero(),
            late: zero(),
            slow: zero(),
            abandoned: zero(),
            panicked: zero(),
        }
    }

    /// A transition, if it is one.
    pub(super) fn moved(&self, from: Place, to: Place) {
        let counter = match to {
            _ if from == to => return,
            Place::Open | Place::ForcedOpen => &self.opened,
            Place::HalfOpen => &self.half_opened,
            // From ramping to closed nothing is decided: the circuit has been closed since the ramp began.
            Place::Closed | Place::Ramping if from != Place::Ramping => &self.closed,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            opened: read(&self.opened),
            half_opened: read(&self.half_opened),
            closed: read(&self.closed),
            refused: read(&self.refused),
            late: read(&self.late),
            slow: read(&self.slow),
            abandoned: read(&self.abandoned),
            panicked: read(&self.panicked),
        }
    }
}
