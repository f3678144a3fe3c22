//! Places that were left and not given back yet.
//!
//! # Why not give every place back at once?
//! A word that all threads write goes from processor to processor with every call, which costs more than the rest of a guard.
//! A thread that has left its place keeps it parked in a slot of its own, and takes it again for its next call. Whoever
//! finds the gate full takes all parked places out of the slots first, and nothing is parked while somebody waits.

use crate::stats::{stripes, thread_number};
use crate::sync::{AtomicU64, Ordering};

/// A slot for one place per thread, as far as the machine has processors.
#[derive(Debug)]
pub(super) struct Parked(Box<[Slot]>);

/// One, if a place is parked there.
#[repr(align(128))] // Two cache lines, which is what processors fetch together.
#[derive(Debug)]
struct Slot(AtomicU64);

impl Parked {
    pub(super) fn new() -> Self {
        Parked((0..stripes()).map(|_| Slot(AtomicU64::new(0))).collect())
    }

    #[inline]
    fn slot(&self) -> &AtomicU64 {
        &self.0[thread_number() & (self.0.len() - 1)].0
    }

    /// Parks a place that was left, if there is room for it. Whoever has done so must then look whether somebody waits.
    #[inline]
    pub(super) fn park(&self) -> bool {
        self.slot().compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Takes the place that this thread has parked, if it is still there.
    #[inline]
    pub(super) fn take(&self) -> bool {
        let slot = self.slot();
        slot.load(Ordering::Relaxed) == 1
            && slot.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes all places out of the slots, and says how many there were.
    pub(super) fn take_all(&self) -> u32 {
        let taken =
            |slot: &&Slot| slot.0.load(Ordering::SeqCst) == 1 && slot.0.swap(0, Ordering::SeqCst) == 1;
        self.0.iter().filter(taken).count() as u32
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().filter(|slot| slot.0.load(Ordering::Acquire) == 1).count() as u32
    }
}
