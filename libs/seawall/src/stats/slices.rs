//! Counts by slices of time.

#[cfg(not(seawall_loom))]
use std::cell::Cell;
#[cfg(not(seawall_loom))]
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

#[cfg(test)]
use crate::clock::from_units;
use crate::clock::{Unit, units};
use crate::sync::{AtomicU64, Ordering};

/// How many slices there is room for; a power of two, so that a slice finds its place by a mask.
const PLACES: usize = 16;

/// How a while is cut into slices: 8 to 15 of them, each a power of two of units long, so that no division is
/// needed to find the present one.
///
/// What is counted is never older than the while; the oldest slice is dropped as a whole, so between 7/9 and
/// all of it is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slicing {
    shift: u32,
    slices: u64,
}

impl Slicing {
    pub(crate) fn of(window: Duration) -> Self {
        let units = units(window).max(8);
        let shift = (units / 8).ilog2();
        Slicing { shift, slices: units >> shift }
    }

    /// The slice that `at` falls into.
    pub(super) fn slice(self, at: Unit) -> u64 {
        at >> self.shift
    }

    /// The oldest slice that still counts at `at`.
    pub(super) fn oldest(self, at: Unit) -> u64 {
        self.slice(at).saturating_sub(self.slices - 1)
    }

    /// With as many slices more as make it see the whole while at any time, and up to two slices beyond. For [`Spent`] only:
    /// counts have no room for them.
    ///
    /// [`Spent`]: super::Spent
    pub(crate) fn at_least(self) -> Self {
        Slicing { slices: self.slices + 2, ..self }
    }

    /// The time that all slices together cover.
    #[cfg(test)]
    pub(crate) fn covered(self) -> Duration {
        from_units(self.slices << self.shift)
    }

    /// What a slice's count is marked with: when the slice began, or when counting began if that was later.
    /// A count with another mark is of another time or of another phase of a breaker, and is taken as zero.
    fn mark(self, slice: u64, since: Unit) -> u64 {
        (slice << self.shift).max(since) & MARK_MASK
    }
}

/// A place packs a mark of 38 bits (nine years of units) and a count of 26 bits (67 million a slice and thread).
const COUNT_BITS: u32 = 26;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const MARK_MASK: u64 = (1 << (64 - COUNT_BITS)) - 1;
/// A mark is newer if it is ahead by less than this (13 days of units). Whatever is further away on the circle of marks is
/// old: nobody is held up for days between reading the time and counting, but a place may rest untouched for years.
const AHEAD_MAX: u64 = 1 << 30;

/// Counts of one kind, in slices of time. Any number of threads may add.
#[repr(align(128))] // Two cache lines, which is what processors fetch together.
#[derive(Debug)]
pub(crate) struct Slices([AtomicU64; PLACES]);

impl Slices {
    pub(crate) fn new() -> Self {
        Slices(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Adds one at `at`, counting from `since`.
    #[inline]
    pub(crate) fn add(&self, slicing: Slicing, at: Unit, since: Unit) {
        let slice = slicing.slice(at);
        let mark = slicing.mark(slice, since);
        let place = &self.0[slice as usize % PLACES];
        let held = place.load(Ordering::Relaxed);
        if held >> COUNT_BITS == mark && held & COUNT_MAX < COUNT_MAX / 2 {
            // Adding can't run into the mark: it would take 2²⁷ threads in this line at once.
            // Sequentially consistent, which costs an addition nothing, for those who ask a flag right after they added.
            place.fetch_add(1, Ordering::SeqCst);
        } else {
            Self::renew(place, mark);
        }
    }

    /// The first in a slice (or one close to overflow) replaces what the place held before.
    #[cold]
    fn renew(place: &AtomicU64, mark: u64) {
        let _ = place.fetch_update(Ordering::SeqCst, Ordering::Acquire, |held| {
            let held_mark = held >> COUNT_BITS;
            if held_mark == mark {
                (held & COUNT_MAX < COUNT_MAX).then_some(held + 1)
            } else if held_mark.wrapping_sub(mark) & MARK_MASK < AHEAD_MAX {
                // Somebody is a whole round ahead: what we saw is too old to count.
                None
            } else {
                Some((mark << COUNT_BITS) | 1)
            }
        });
    }

    /// How many were added in the while that ends at `at`, not counting what came before `since`.
    pub(crate) fn sum(&self, slicing: Slicing, at: Unit, since: Unit) -> u64 {
        (slicing.oldest(at)..=slicing.slice(at))
            .map(|slice| {
                let held = self.0[slice as usize % PLACES].load(Ordering::SeqCst);
                // A slice that ended before counting began has the same mark as the one in which it began.
                let ended_before = (slice + 1) << slicing.shift <= since;
                if !ended_before && held >> COUNT_BITS == slicing.mark(slice, since) {
                    held & COUNT_MAX
                } else {
                    0
                }
            })
            .sum()
    }
}

/// [`Slices`], one per thread as far as the machine has processors.
#[derive(Debug)]
pub(crate) struct Stripes(Box<[Slices]>);

/// More would cost memory for nothing: a stripe shared by a few threads is still cheap.
const STRIPES_MAX: usize = 64;

impl Stripes {
    pub(crate) fn new() -> Self {
        Stripes((0..stripes()).map(|_| Slices::new()).collect())
    }

    /// Adds one at `at` to this thread's stripe.
    #[inline]
    pub(crate) fn add(&self, slicing: Slicing, at: Unit, since: Unit) {
        self.0[thread_number() & (self.0.len() - 1)].add(slicing, at, since);
    }

    /// The sum over all stripes.
    pub(crate) fn sum(&self, slicing: Slicing, at: Unit, since: Unit) -> u64 {
        self.0.iter().map(|slices| slices.sum(slicing, at, since)).sum()
    }
}

/// How many stripes are worth it on this machine; a power of two, so that a thread finds its own by a mask.
pub(crate) fn stripes() -> usize {
    let threads = if cfg!(seawall_loom) {
        2
    } else {
        std::thread::available_parallelism().map_or(4, std::num::NonZero::get)
    };
    threads.next_power_of_two().min(STRIPES_MAX)
}

/// The number that loom gave to this thread: the threads of a model are no threads of the system.
#[cfg(seawall_loom)]
pub(crate) fn thread_number() -> usize {
    let id = format!("{:?}", loom::thread::current().id());
    let digits: String =
        id.chars().rev().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.chars().rev().collect::<String>().parse().expect("the number of a thread of the model")
}

/// A small number of this thread's own, given out in the order in which threads first ask.
#[cfg(not(seawall_loom))]
#[inline]
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) });
    let known = NUMBER.get();
    if known != usize::MAX {
        return known;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use crate::{millis, secs};
    use std::collections::VecDeque;

    #[test]
    fn a_while_is_cut_into_eight_to_fifteen_slices_and_never_covers_more() {
        for window in
            [millis(1), millis(9), millis(10), secs(1), secs(10), secs(60), secs(3_600), secs(86_400)]
        {
            let slicing = Slicing::of(window);
            assert!((8..16).contains(&slicing.slices), "{window:?}: {slicing:?}");
            if window >= millis(9) {
                assert!(slicing.covered() <= window);
                assert!(slicing.covered() * 9 >= window * 8);
            }
        }
    }

    /// ENG-4, ENG-5: counts over a while agree with a plain list of events, whatever the gaps between them.
    #[test]
    fn sums_agree_with_a_plain_list() {
        let chance = crate::chance::Chance::seeded(42);
        for window in [millis(20), secs(1), secs(10)] {
            let slicing = Slicing::of(window);
            let slices = Slices::new();
            let mut plain: VecDeque<Unit> = VecDeque::new();
            let (mut at, mut since) = (1_000, 0);
            for _ in 0..20_000 {
                at += match chance.next() % 10 {
                    0 => chance.next() % (units(window) * 3),
                    _ => chance.next() % (units(window) / 8).max(2),
                };
                if chance.next().is_multiple_of(500) {
                    at += 1;
                    since = at;
                }
                slices.add(slicing, at, since);
                plain.push_back(at);
                plain.retain(|&event| slicing.slice(event) >= slicing.oldest(at) && event >= since);
                assert_eq!(slices.sum(slicing, at, since), plain.len() as u64, "at {at}, since {since}");
            }
        }
    }

    #[test]
    fn nothing_is_left_after_an_idle_while_however_long() {
        let slicing = Slicing::of(secs(10));
        for idle in [10, 11, 16, 100, 3_600, 86_400 * 365] {
            let slices = Slices::new();
            let at = units(secs(100));
            slices.add(slicing, at, 0);
            assert_eq!(slices.sum(slicing, at + units(secs(idle)), 0), 0, "idle for {idle} s");
        }
    }

    #[test]
    fn a_late_writer_does_not_erase_a_newer_slice() {
        let slicing = Slicing::of(secs(10));
        let slices = Slices::new();
        let now = units(secs(1_000));
        slices.add(slicing, now, 0);
        // Exactly one round earlier, so that it is the same place.
        slices.add(slicing, now - (PLACES << slicing.shift) as Unit, 0);
        assert_eq!(slices.sum(slicing, now, 0), 1);
    }

    #[test]
    fn a_place_that_rested_for_years_counts_again() {
        let slicing = Slicing::of(secs(10));
        for days in [1_u64, 13, 400, 500, 800, 2_000, 3_000] {
            let slices = Slices::new();
            let now = units(secs(1_000));
            slices.add(slicing, now, 0);
            // The same place again, whole rounds later.
            let round = (PLACES << slicing.shift) as Unit;
            let later = now + units(secs(days * 86_400)) / round * round;
            slices.add(slicing, later, 0);
            assert_eq!(slices.sum(slicing, later, 0), 1, "{days} days");
        }
    }

    #[test]
    fn a_count_stops_at_its_maximum() {
        let slicing = Slicing::of(secs(10));
        let slices = Slices::new();
        let at = units(secs(1_000));
        slices.add(slicing, at, 0);
        let place = &slices.0[slicing.slice(at) as usize % PLACES];
        place.fetch_add(COUNT_MAX - 2, Ordering::Relaxed);
        (0..10).for_each(|_| slices.add(slicing, at, 0));
        assert_eq!(slices.sum(slicing, at, 0), COUNT_MAX);
    }

    #[test]
    fn threads_lose_no_count() {
        let (slicing, stripes) = (Slicing::of(secs(10)), Stripes::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25_000).for_each(|i| stripes.add(slicing, 5_000 + i / 10_000, 0)));
            }
        });
        assert_eq!(stripes.sum(slicing, 5_002, 0), 100_000);
    }
}
