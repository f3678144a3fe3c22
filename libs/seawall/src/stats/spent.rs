//! What was taken lately, decided by one word.

use super::slices::Slicing;
use crate::clock::Unit;
use crate::sync::{AtomicU64, Ordering};

/// How many slices there is room for: the most that a window is cut into, and two more.
const PLACES: usize = 32;

/// A running total, and what it was when each slice of time began.
///
/// What was taken in the last while is the total now less the total when the oldest slice began. Only the total
/// is changed by taking, by compare-and-swap, so of two threads that both see one piece left exactly one gets it;
/// counts per slice could not promise that where a slice ends between the two.
#[derive(Debug)]
pub(crate) struct Spent {
    total: AtomicU64,
    /// Slice number in the upper half, lower half of the total in the lower one.
    began: [AtomicU64; PLACES],
}

impl Spent {
    pub(crate) fn new() -> Self {
        // No slice has the number 2³²-1 for a century.
        Spent { total: AtomicU64::new(0), began: std::array::from_fn(|_| AtomicU64::new(u64::MAX)) }
    }

    /// Takes one if `allows` says so, given what was taken in the while that ends at `at`.
    pub(crate) fn try_take(&self, slicing: Slicing, at: Unit, mut allows: impl FnMut(u64) -> bool) -> bool {
        loop {
            let total = self.total.load(Ordering::Acquire);
            // Before anything is taken in a slice, the total at its beginning is written down.
            self.begin(slicing.slice(at), total);
            if !allows(self.since_oldest(slicing, at, total)) {
                return false;
            }
            let taken = self.total.compare_exchange_weak(
                total,
                total.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if taken.is_ok() {
                return true;
            }
        }
    }

    /// Takes one, whatever was taken before.
    pub(crate) fn take(&self, slicing: Slicing, at: Unit) {
        self.try_take(slicing, at, |_| true);
    }

    /// Gives one back at `now` that was taken at `taken`. What was taken so long ago that it counts no more is not given
    /// back: it would be a present.
    pub(crate) fn give_back(&self, slicing: Slicing, taken: Unit, now: Unit) {
        if slicing.slice(taken) < slicing.oldest(now) {
            return;
        }
        self.total.fetch_sub(1, Ordering::AcqRel);
        // Slices that began since then have written down a total that contains it.
        for slice in slicing.slice(taken) + 1..=slicing.slice(now) {
            let _ = self.began[slice as usize % PLACES].fetch_update(
                Ordering::AcqRel,
                Ordering::Acquire,
                |held| {
                    let lower = u64::from((held as u32).wrapping_sub(1));
                    (held >> 32 == slice & 0xFFFF_FFFF).then_some(held & !0xFFFF_FFFF | lower)
                },
            );
        }
    }

    /// How many were taken and not given back in the while that ends at `at`.
    pub(crate) fn count(&self, slicing: Slicing, at: Unit) -> u64 {
        self.since_oldest(slicing, at, self.total.load(Ordering::Acquire))
    }

    fn begin(&self, slice: u64, total: u64) {
        let place = &self.began[slice as usize % PLACES];
        let held = place.load(Ordering::Acquire);
        if held >> 32 != slice & 0xFFFF_FFFF {
            let _ = place.compare_exchange(
                held,
                (slice << 32) | (total & 0xFFFF_FFFF),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
        }
    }

    fn since_oldest(&self, slicing: Slicing, at: Unit, total: u64) -> u64 {
        for slice in slicing.oldest(at)..=slicing.slice(at) {
            let held = self.began[slice as usize % PLACES].load(Ordering::Acquire);
            if held >> 32 == slice & 0xFFFF_FFFF {
                let taken = (total as u32).wrapping_sub(held as u32);
                // While somebody gives back it may be less than nothing: that is nothing.
                return if taken > u32::MAX / 2 { 0 } else { u64::from(taken) };
            }
        }
        0
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use crate::clock::units;
    use crate::secs;

    #[test]
    fn never_more_than_allowed_is_taken_in_any_while() {
        let (slicing, spent) = (Slicing::of(secs(10)), Spent::new());
        let chance = crate::chance::Chance::seeded(9);
        let mut taken = Vec::new();
        let mut at = units(secs(50));
        for _ in 0..50_000 {
            at += chance.next() % 40;
            if spent.try_take(slicing, at, |spent| spent < 100) {
                taken.push(at);
            }
            let oldest = slicing.oldest(at);
            assert!(taken.iter().rev().take_while(|&&t| slicing.slice(t) >= oldest).count() <= 100);
        }
        assert!(taken.len() > 5_000, "it gives out what is allowed: {}", taken.len());
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (slicing, spent) = (Slicing::of(secs(10)), Spent::new());
        let at = units(secs(50));
        assert!(spent.try_take(slicing, at, |spent| spent < 1));
        assert!(!spent.try_take(slicing, at, |spent| spent < 1));
        spent.give_back(slicing, at, at);
        assert!(spent.try_take(slicing, at, |spent| spent < 1));
        assert_eq!(spent.count(slicing, at), 1);
    }

    /// Given back in a later slice it is gone from every slice; given back after the window it was gone already.
    #[test]
    fn giving_back_late_is_no_present() {
        for pause in 0..30 {
            let (slicing, spent) = (Slicing::of(secs(10)), Spent::new());
            let (taken, now) = (units(secs(50)), units(secs(50 + pause)));
            assert!(spent.try_take(slicing, taken, |_| true));
            (0..5).for_each(|_| assert!(spent.try_take(slicing, now, |_| true)));
            spent.give_back(slicing, taken, now);
            assert_eq!(spent.count(slicing, now), 5, "after {pause} s");
            for later in 0..8 {
                assert_eq!(
                    spent.count(slicing, now + units(secs(later))),
                    5,
                    "after {pause} s, and {later} s later"
                );
            }
        }
    }

    /// Trap "check-then-act": of many threads that see one piece left, one gets it.
    #[test]
    fn threads_together_take_no_more_than_allowed() {
        let (slicing, spent) = (Slicing::of(secs(10)), Spent::new());
        let at = units(secs(50));
        let taken: usize = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..2_000).filter(|_| spent.try_take(slicing, at, |spent| spent < 777)).count()
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });
        assert_eq!(taken, 777);
    }
}
