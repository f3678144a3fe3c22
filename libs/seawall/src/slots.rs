//! A bounded map that lets go of what was not asked for lately.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// A map from names to things, with room for so many. When it is full, something that was not asked for lately makes room,
/// by a second chance: a hand goes round, takes the mark from those that were asked for, and stops at one without.
///
/// Asking needs no exclusive access, so readers may share it.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: HashMap<Box<str>, usize>,
    slots: Vec<Slot<T>>,
    /// Where the search for one to make room goes on.
    hand: usize,
    /// Where one has just made room: the next takes its place, behind the hand, and is looked at last.
    vacant: Option<usize>,
}

#[derive(Debug)]
struct Slot<T> {
    key: Box<str>,
    thing: T,
    /// Whether it was asked for since the hand last passed.
    touched: AtomicBool,
}

/// What a search for room has come to.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Room<T> {
    /// Whether there is room for one more.
    pub(crate) is_there: bool,
    /// Those that have gone for it. To be dropped when nobody waits for it.
    pub(crate) gone: Vec<T>,
}

/// How many slots a search looks at: enough to find one in any ordinary crowd, and a bound on what one call can cost.
const SEARCH_MAX: usize = 64;

#[cfg_attr(not(feature = "task"), allow(dead_code, reason = "families of guards take nothing out"))]
impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Slots { places: HashMap::new(), slots: Vec::new(), hand: 0, vacant: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&T> {
        let slot = &self.slots[*self.places.get(key)?];
        // Only written when it changes, so that readers share the line.
        if !slot.touched.load(Ordering::Relaxed) {
            slot.touched.store(true, Ordering::Relaxed);
        }
        Some(&slot.thing)
    }

    /// As [`get`](Slots::get), without asking for it.
    pub(crate) fn peek(&self, key: &str) -> Option<&T> {
        Some(&self.slots[*self.places.get(key)?].thing)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        let slot = &mut self.slots[*self.places.get(key)?];
        *slot.touched.get_mut() = true;
        Some(&mut slot.thing)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.thing)
    }

    /// Makes room for one more where there are `max` already: one that was not asked for lately and that `can_go` goes. Where
    /// the bound was lowered, as many go as one search finds, so that it is reached in the end and no call pays for all.
    pub(crate) fn make_room(&mut self, max: usize, can_go: impl Fn(&T) -> bool) -> Room<T> {
        let before = self.slots.len();
        if before < max {
            return Room { is_there: true, gone: Vec::new() };
        }
        let (mut spare, mut gone) = (None, Vec::new());
        // Twice round takes every mark away, if there are few.
        for _ in 0..SEARCH_MAX.min(2 * before) {
            let place = self.hand % self.slots.len();
            self.hand = place + 1;
            let slot = &mut self.slots[place];
            let was_touched = std::mem::take(slot.touched.get_mut());
            if !can_go(&slot.thing) {
                continue;
            }
            if was_touched {
                spare = spare.or(Some(place));
                continue;
            }
            gone.push(self.vacate(place));
            if self.slots.len() < max {
                return Room { is_there: true, gone };
            }
        }
        // All of them were asked for lately: then the first, or nobody who is new would ever get in beside a busy crowd.
        if let (Some(place), true) = (spare, gone.is_empty()) {
            gone.push(self.vacate(place));
        }
        // Still above the bound, but with one more there are fewer than before.
        Room { is_there: self.slots.len() < max || gone.len() > 1, gone }
    }

    /// Puts something in under a name that is free.
    pub(crate) fn add(&mut self, key: &str, thing: T) {
        let last = self.slots.len();
        self.slots.push(Slot { key: key.into(), thing, touched: AtomicBool::new(false) });
        let place = self.vacant.take().filter(|&place| place < last).unwrap_or(last);
        self.slots.swap(place, last);
        self.places.insert(key.into(), place);
        if place < last {
            self.places.insert(self.slots[last].key.clone(), last);
        }
    }

    /// The names of all that there are.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| &*slot.key)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<T> {
        let place = *self.places.get(key)?;
        self.vacant = None;
        Some(self.take_out(place))
    }

    fn vacate(&mut self, place: usize) -> T {
        let gone = self.take_out(place);
        self.vacant = Some(place);
        gone
    }

    fn take_out(&mut self, place: usize) -> T {
        let gone = self.slots.swap_remove(place);
        self.places.remove(&gone.key);
        if let Some(moved) = self.slots.get(place) {
            self.places.insert(moved.key.clone(), place);
        }
        gone.thing
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Puts something in, if there is room; says how many have gone for it.
    fn put(slots: &mut Slots<u32>, key: u32, max: usize, can_go: impl Fn(&u32) -> bool) -> Option<usize> {
        let room = slots.make_room(max, can_go);
        if room.is_there {
            slots.add(&key.to_string(), key);
        }
        room.is_there.then_some(room.gone.len())
    }

    #[test]
    fn what_was_asked_for_stays_and_the_rest_makes_room() {
        let mut slots = Slots::new();
        assert_eq!([0, 1, 2, 3].map(|n| put(&mut slots, n, 4, |_| true)), [Some(0); 4]);
        assert_eq!((slots.get("0"), slots.get("2")), (Some(&0), Some(&2)));
        assert_eq!([4, 5].map(|n| put(&mut slots, n, 4, |_| true)), [Some(1); 2]);
        assert_eq!((slots.get("0"), slots.get("2"), slots.len()), (Some(&0), Some(&2), 4));
        assert_eq!((slots.get("1"), slots.get("3")), (None, None));
        assert_eq!(put(&mut slots, 6, 4, |_| false), None);
        assert_eq!((slots.len(), slots.remove("5"), slots.remove("5")), (4, Some(5), None));
    }

    /// Bug: in a crowd larger than a search, all of it asked for between two newcomers, no newcomer ever got in.
    #[test]
    fn a_newcomer_gets_in_beside_a_busy_crowd() {
        let mut slots = Slots::new();
        (0..1_000).for_each(|n| assert!(put(&mut slots, n, 1_000, |_| true).is_some()));
        for newcomer in 1_000..1_010 {
            (0..1_000_u32).for_each(|n| assert!(slots.get(&n.to_string()).is_some() || newcomer > 1_000));
            assert_eq!(put(&mut slots, newcomer, 1_000, |_| true), Some(1));
        }
        assert_eq!(put(&mut slots, 5_000, 1_000, |_| false), None);
    }

    #[test]
    fn a_bound_that_was_lowered_is_reached_in_steps() {
        let mut slots = Slots::new();
        (0..1_000).for_each(|n| assert!(put(&mut slots, n, 1_000, |_| true).is_some()));
        let mut steps = 0;
        while slots.len() > 10 {
            let before = slots.len();
            assert!(put(&mut slots, 1_000 + steps, 10, |_| true).is_some());
            assert!(slots.len() < before && before - slots.len() <= SEARCH_MAX);
            steps += 1;
        }
        assert!((15..40).contains(&steps), "{steps}");
        assert_eq!(
            put(&mut slots, 5_000, 9, |&n| n == 1_000),
            None,
            "one that can go is not enough to shrink"
        );
    }

    proptest! {
        /// Names lead to what was put in under them, and never more is held than the bound, whatever is done in which order.
        #[test]
        fn a_name_leads_to_what_was_put_in_under_it(
            steps in proptest::collection::vec((0_u8..3, 0_u32..12), 1..200), max in 1_usize..6,
        ) {
            let mut slots = Slots::new();
            for (step, key) in steps {
                let name = key.to_string();
                match step {
                    0 => drop(slots.remove(&name)),
                    _ if slots.get(&name).is_some() => {}
                    _ => prop_assert!(put(&mut slots, key, max, |_| true).is_some()),
                }
                prop_assert!(slots.len() <= max && slots.places.len() == slots.len());
                for (name, &place) in &slots.places {
                    prop_assert_eq!(&slots.slots[place].key, name);
                    prop_assert_eq!(slots.slots[place].thing.to_string(), &**name);
                }
            }
        }
    }
}
