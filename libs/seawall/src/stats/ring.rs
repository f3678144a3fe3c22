//! The outcomes of the last `n` calls, in a window that really slides.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

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
/// Everything in it is marked with the *phase* (when the circuit last closed) that it belongs to, so that a new
/// phase starts empty without anybody clearing anything, and a writer who was held up while the phase changed
/// can harm nothing: its mark is old.
///
/// The invariant: `bad` counts exactly the bad outcomes among the slots that are marked with its own phase.
/// A writer replaces a slot and then adds the difference, so it holds whenever nobody is between the two.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Phase (40 bits), then how many outcomes were recorded in it: exact up to the size, then circling
    /// between the size and twice the size.
    head: AtomicU64,
    /// Phase (30 bits), failures (17 bits), slow calls (17 bits).
    bad: AtomicU64,
    /// Phase (30 bits), failed, slow.
    slots: Box<[AtomicU32]>,
}

const HEAD_BITS: u32 = 24;
const BAD_BITS: u32 = 17;
const BAD_MASK: u64 = (1 << BAD_BITS) - 1;
const PHASE_MASK: u64 = (1 << 30) - 1;
/// The largest window: its counts must fit into the packed words.
pub(crate) const RING_MAX: u32 = 100_000;

impl Ring {
    pub(crate) fn new(size: u32) -> Self {
        assert!((1..=RING_MAX).contains(&size), "the builder refuses other sizes");
        Ring {
            head: AtomicU64::new(0),
            bad: AtomicU64::new(0),
            slots: (0..size).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether it is full of good outcomes of this phase, so that one more changes nothing.
    #[inline]
    pub(crate) fn is_clean(&self, phase: u64) -> bool {
        let head = self.head.load(Ordering::Acquire);
        let bad = self.bad.load(Ordering::Acquire);
        head >> HEAD_BITS == phase
            && recorded(head) >= self.slots.len() as u64
            && (bad & ((1 << (2 * BAD_BITS)) - 1) == 0 || bad >> (2 * BAD_BITS) != phase & PHASE_MASK)
    }

    /// Puts in one more outcome and says what the window holds then; `None` if the phase is over.
    pub(crate) fn record(&self, phase: u64, mark: Mark) -> Option<Tally> {
        let before = self.claim(phase)?;
        let new = ((phase & PHASE_MASK) << 2) as u32 | u32::from(mark.slow) << 1 | u32::from(mark.failed);
        let slot = &self.slots[before as usize % self.slots.len()];
        let old = slot
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                (!is_newer(u64::from(held >> 2), phase & PHASE_MASK)).then_some(new)
            })
            .ok()?;
        // What another phase left there was never counted in this one.
        let old = if old >> 2 == new >> 2 { old } else { 0 };
        let bad = self.adjust(phase, old, new)?;
        // Read after the counts were adjusted: of two threads that record at once, the later one sees both calls and both
        // outcomes. (Counting only the slots up to our own, neither of them saw the whole; loom found that.)
        let head = self.head.load(Ordering::Acquire);
        let calls = if head >> HEAD_BITS == phase { recorded(head) } else { before + 1 };
        Some(Tally { calls: calls.min(self.slots.len() as u64), ..bad })
    }

    /// What the window holds in this phase.
    pub(crate) fn tally(&self, phase: u64) -> Tally {
        let head = self.head.load(Ordering::Acquire);
        if head >> HEAD_BITS != phase {
            return Tally::default();
        }
        let calls = recorded(head).min(self.slots.len() as u64);
        Tally { calls, ..counts(self.bad.load(Ordering::Acquire), phase) }
    }

    /// Takes the next slot of the phase and says how many came before.
    fn claim(&self, phase: u64) -> Option<u64> {
        let size = self.slots.len() as u64;
        let head = self
            .head
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |head| {
                let held_phase = head >> HEAD_BITS;
                if held_phase == phase {
                    let next = recorded(head) + 1;
                    let next = if next == 2 * size { size } else { next };
                    Some((phase << HEAD_BITS) | next)
                } else {
                    // Phases only grow.
                    (held_phase < phase).then_some((phase << HEAD_BITS) | 1)
                }
            })
            .ok()?;
        Some(if head >> HEAD_BITS == phase { recorded(head) } else { 0 })
    }

    /// Adds the difference between two slots to the counts of the phase.
    fn adjust(&self, phase: u64, old: u32, new: u32) -> Option<Tally> {
        let own = phase & PHASE_MASK;
        let updated = |held: u64| {
            let held_phase = held >> (2 * BAD_BITS);
            if is_newer(held_phase, own) {
                return None;
            }
            let Tally { failures, slow, .. } = counts(held, phase);
            let failures = (failures + u64::from(new & 1)).wrapping_sub(u64::from(old & 1)) & BAD_MASK;
            let slow = (slow + u64::from(new >> 1 & 1)).wrapping_sub(u64::from(old >> 1 & 1)) & BAD_MASK;
            Some((own << (2 * BAD_BITS)) | (failures << BAD_BITS) | slow)
        };
        let held = self.bad.fetch_update(Ordering::AcqRel, Ordering::Acquire, updated).ok()?;
        updated(held).map(|bad| counts(bad, phase))
    }
}

fn recorded(head: u64) -> u64 {
    head & ((1 << HEAD_BITS) - 1)
}

fn counts(bad: u64, phase: u64) -> Tally {
    if bad >> (2 * BAD_BITS) != phase & PHASE_MASK {
        return Tally::default();
    }
    Tally { calls: 0, failures: bad >> BAD_BITS & BAD_MASK, slow: bad & BAD_MASK }
}

/// Whether the phase that is held is newer than ours, on a circle of 30 bits (13 days of units, and a writer is
/// never held up for that long).
fn is_newer(held: u64, own: u64) -> bool {
    let ahead = held.wrapping_sub(own) & PHASE_MASK;
    ahead != 0 && ahead < 1 << 29
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
        let bad = ring.slots.iter().filter(|slot| slot.load(Ordering::Relaxed) & 1 == 1).count() as u64;
        assert_eq!(ring.tally(7), Tally { calls: 50, failures: bad, slow: 0 });
        (0..50).for_each(|_| assert!(ring.record(7, GOOD).is_some()));
        assert!(ring.is_clean(7));
    }
}
