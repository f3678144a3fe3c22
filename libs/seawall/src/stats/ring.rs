//! The outcomes of the last `n` calls, in a window that really slides.

use crate::sync::{AtomicU64, Ordering};

/// What a call left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) failed: bool,
    pub(crate) slow: bool,
}

impl Mark {
    pub(crate) fn is_good(self) -> bool {
        !self.failed && !self.slow
    }
}

/// What a window of calls holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Tally {
    /// All calls.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that were slow, whether they failed or not.
    pub slow: u64,
}

/// A ring of the last outcomes, for any number of threads, without a lock.
///
/// Everything in it is marked with the whole *phase* (when the circuit last closed; 40 bits that only grow) that it belongs
/// to. So a new phase starts empty without anybody clearing anything, what is left of any older one is old however long ago
/// that was, and a writer who was held up while the phase changed can harm nothing.
///
/// The invariant: `failed` and `slow` count exactly the outcomes among the slots that are marked with their own phase. A
/// writer replaces a slot and then adds the difference, so it holds whenever nobody is between the two.
#[derive(Debug)]
pub(crate) struct Ring {
    /// How many outcomes were recorded: exact up to the size, then circling between the size and twice the size.
    head: AtomicU64,
    failed: AtomicU64,
    slow: AtomicU64,
    /// In each the phase, failed, slow.
    slots: Box<[AtomicU64]>,
}

/// A phase in the upper 40 bits, a count in the lower 24.
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// The largest window: its counts, and twice its size, must fit.
pub(crate) const RING_MAX: u32 = 100_000;

impl Ring {
    pub(crate) fn new(size: u32) -> Self {
        assert!((1..=RING_MAX).contains(&size), "the builder refuses other sizes");
        Ring {
            head: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            slots: (0..size).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether it is full of good outcomes of this phase, so that one more changes nothing.
    #[inline]
    pub(crate) fn is_clean(&self, phase: u64) -> bool {
        count(&self.head, phase) >= self.slots.len() as u64
            && count(&self.failed, phase) == 0
            && count(&self.slow, phase) == 0
    }

    /// Puts in one more outcome and says what the window holds then; `None` if the phase is over.
    pub(crate) fn record(&self, phase: u64, mark: Mark) -> Option<Tally> {
        let before = self.claim(phase)?;
        let new = phase << 2 | u64::from(mark.slow) << 1 | u64::from(mark.failed);
        let old = self.slots[before as usize % self.slots.len()]
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| (held >> 2 <= phase).then_some(new))
            .ok()?;
        // What another phase left there was never counted in this one.
        let old = if old >> 2 == phase { old } else { 0 };
        adjust(&self.failed, phase, old & 1, new & 1);
        adjust(&self.slow, phase, old >> 1 & 1, new >> 1 & 1);
        // Read after the counts were adjusted: of two threads that record at once, the later one sees both calls and both
        // outcomes. (Counting only the slots up to our own, neither of them saw the whole; loom found that.)
        Some(self.tally(phase))
    }

    /// What the window holds in this phase.
    pub(crate) fn tally(&self, phase: u64) -> Tally {
        Tally {
            failures: count(&self.failed, phase),
            slow: count(&self.slow, phase),
            calls: count(&self.head, phase).min(self.slots.len() as u64),
        }
    }

    /// Takes the next slot of the phase and says how many came before.
    fn claim(&self, phase: u64) -> Option<u64> {
        let size = self.slots.len() as u64;
        let head = self
            .head
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |head| {
                let held_phase = head >> COUNT_BITS;
                if held_phase == phase {
                    let next = (head & COUNT_MASK) + 1;
                    let next = if next == 2 * size { size } else { next };
                    Some(phase << COUNT_BITS | next)
                } else {
                    // Phases only grow.
                    (held_phase < phase).then_some(phase << COUNT_BITS | 1)
                }
            })
            .ok()?;
        Some(if head >> COUNT_BITS == phase { head & COUNT_MASK } else { 0 })
    }
}

#[inline]
fn count(counter: &AtomicU64, phase: u64) -> u64 {
    let held = counter.load(Ordering::Acquire);
    if held >> COUNT_BITS == phase { held & COUNT_MASK } else { 0 }
}

/// Adds the difference between two outcomes to a counter of the phase; nothing, if the phase is over.
fn adjust(counter: &AtomicU64, phase: u64, old: u64, new: u64) {
    if old == new {
        return;
    }
    let _ = counter.fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
        let counted = match (held >> COUNT_BITS).cmp(&phase) {
            std::cmp::Ordering::Greater => return None,
            std::cmp::Ordering::Equal => held & COUNT_MASK,
            std::cmp::Ordering::Less => 0,
        };
        // It may pass through less than nothing, while a writer is between its slot and its counter.
        Some(phase << COUNT_BITS | counted.wrapping_add(new).wrapping_sub(old) & COUNT_MASK)
    });
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: Mark = Mark { failed: false, slow: false };
    const BAD: Mark = Mark { failed: true, slow: false };

    proptest! {
        /// ENG-5: the window holds exactly the last n outcomes of the phase, whatever came before.
        #[test]
        fn eng_5_the_ring_is_the_last_n_outcomes(
            size in 1u32..40,
            script in prop::collection::vec((any::<bool>(), any::<bool>(), 0u8..60), 0..400),
        ) {
            let ring = Ring::new(size);
            let mut plain: Vec<Mark> = Vec::new();
            let mut phase = 1 << 38;
            for (failed, slow, turn) in script {
                if turn == 0 {
                    phase += 1 + u64::from(slow) * 5_000;
                    plain.clear();
                }
                let mark = Mark { failed, slow: slow && turn > 30 };
                plain.push(mark);
                let window = &plain[plain.len().saturating_sub(size as usize)..];
                let expected = Tally {
                    calls: window.len() as u64,
                    failures: window.iter().filter(|mark| mark.failed).count() as u64,
                    slow: window.iter().filter(|mark| mark.slow).count() as u64,
                };
                prop_assert_eq!(ring.record(phase, mark), Some(expected));
                prop_assert_eq!(ring.tally(phase), expected);
                let clean = window.len() == size as usize && window.iter().all(|mark| mark.is_good());
                prop_assert_eq!(ring.is_clean(phase), clean);
            }
        }
    }

    #[test]
    fn an_older_phase_changes_nothing() {
        let ring = Ring::new(4);
        for _ in 0..4 {
            ring.record(100, GOOD);
        }
        assert_eq!(ring.record(99, BAD), None);
        assert_eq!(ring.tally(100), Tally { calls: 4, failures: 0, slow: 0 });
        assert_eq!(ring.tally(101), Tally::default());
    }

    /// A writer that was held up after it had claimed its slot, while the circuit opened and closed again.
    #[test]
    fn a_writer_that_was_held_up_harms_nothing() {
        let ring = Ring::new(2);
        let slot = &ring.slots[0];
        assert_eq!(ring.claim(100), Some(0));
        assert_eq!(ring.record(101, GOOD), Some(Tally { calls: 1, failures: 0, slow: 0 }));
        let late = slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
            (held >> 2 <= 100).then_some(100 << 2 | 1)
        });
        assert!(late.is_err(), "the slot is of a newer phase");
        adjust(&ring.failed, 101, 0, 1);
        adjust(&ring.failed, 100, 0, 1);
        assert_eq!(count(&ring.failed, 101), 1, "a counter of a newer phase does not move");
    }

    /// However long the phase before lasted, a new one counts.
    #[test]
    fn what_an_older_phase_left_is_old_however_long_ago() {
        for days in [1_u64, 6, 7, 8, 13, 20, 60, 100, 365, 3_650] {
            let ring = Ring::new(4);
            assert_eq!((0..4).filter_map(|_| ring.record(1, BAD)).count(), 4);
            let later = 1 + crate::clock::units(crate::secs(days * 86_400));
            assert_eq!(
                ring.record(later, BAD),
                Some(Tally { calls: 1, failures: 1, slow: 0 }),
                "{days} days"
            );
        }
    }

    #[test]
    fn threads_leave_the_counts_exact() {
        let ring = Ring::new(50);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let ring = &ring;
                scope.spawn(move || {
                    for i in 0..20_000 {
                        ring.record(7, if (i + number) % 3 == 0 { BAD } else { GOOD });
                    }
                });
            }
        });
        assert!(count(&ring.head, 7) < 100, "the head circles");
        let bad = ring.slots.iter().filter(|slot| slot.load(Ordering::Relaxed) & 1 == 1).count() as u64;
        assert_eq!(ring.tally(7), Tally { calls: 50, failures: bad, slow: 0 });
        (0..50).for_each(|_| assert!(ring.record(7, GOOD).is_some()));
        assert!(ring.is_clean(7));
    }
}
