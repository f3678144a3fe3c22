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
}

#[derive(Debug)]
struct Slot<T> {
    key: Box<str>,
    thing: T,
    /// Whether it was asked for since the hand last passed.
    touched: AtomicBool,
}

/// What became of something that was put in.
#[derive(Debug)]
pub(crate) enum Put<T> {
    /// There was room.
    Added,
    /// This one of the same name, or one that made room.
    Replaced(T),
    /// Nothing could make room: here it is again.
    Full(T),
}

/// How many slots a search looks at: enough to find one in any ordinary crowd, and a bound on what one call can cost.
const SEARCH_MAX: usize = 64;

#[cfg_attr(not(feature = "task"), allow(dead_code, reason = "families of guards take nothing out"))]
impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Slots { places: HashMap::new(), slots: Vec::new(), hand: 0 }
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

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        let slot = &mut self.slots[*self.places.get(key)?];
        *slot.touched.get_mut() = true;
        Some(&mut slot.thing)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.thing)
    }

    /// Puts something in. If there are `max` already, one that `can_go` makes room.
    pub(crate) fn put(&mut self, key: &str, thing: T, max: usize, can_go: impl Fn(&T) -> bool) -> Put<T> {
        if let Some(old) = self.get_mut(key) {
            return Put::Replaced(std::mem::replace(old, thing));
        }
        // Where the bound was lowered, one more goes each time, so that it is reached in the end.
        if self.slots.len() > max
            && let Some(place) = self.find(&can_go)
        {
            self.take_out(place);
        }
        let slot = Slot { key: key.into(), thing, touched: AtomicBool::new(false) };
        if self.slots.len() < max {
            self.places.insert(key.into(), self.slots.len());
            self.slots.push(slot);
            return Put::Added;
        }
        let Some(place) = self.find(&can_go) else { return Put::Full(slot.thing) };
        self.places.insert(key.into(), place);
        let gone = std::mem::replace(&mut self.slots[place], slot);
        self.places.remove(&gone.key);
        Put::Replaced(gone.thing)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<T> {
        let place = *self.places.get(key)?;
        Some(self.take_out(place))
    }

    pub(crate) fn clear(&mut self) {
        (self.places, self.slots, self.hand) = (HashMap::new(), Vec::new(), 0);
    }

    fn find(&mut self, can_go: impl Fn(&T) -> bool) -> Option<usize> {
        let count = self.slots.len();
        // Twice round takes every mark away, if there are few.
        for _ in 0..SEARCH_MAX.min(2 * count) {
            let place = self.hand % count;
            self.hand = place + 1;
            let slot = &mut self.slots[place];
            if !std::mem::take(slot.touched.get_mut()) && can_go(&slot.thing) {
                return Some(place);
            }
        }
        None
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

    #[test]
    fn what_was_asked_for_stays_and_the_rest_makes_room() {
        let mut slots = Slots::new();
        for n in 0..4 {
            assert!(matches!(slots.put(&n.to_string(), n, 4, |_| true), Put::Added));
        }
        assert_eq!((slots.get("0"), slots.get("2")), (Some(&0), Some(&2)));
        assert!(matches!(slots.put("4", 4, 4, |_| true), Put::Replaced(1)));
        assert!(matches!(slots.put("5", 5, 4, |_| true), Put::Replaced(3)));
        assert_eq!(slots.get("0"), Some(&0));
        assert!(matches!(slots.put("6", 6, 4, |_| false), Put::Full(6)));
        assert_eq!((slots.len(), slots.remove("5"), slots.remove("5")), (4, Some(5), None));
    }

    proptest! {
        /// Names lead to what was put in under them, and never more is held than the bound, whatever is done in which order.
        #[test]
        fn a_name_leads_to_what_was_put_in_under_it(
            steps in proptest::collection::vec((0_u8..4, 0_u8..12), 1..200), max in 1_usize..6,
        ) {
            let mut slots = Slots::new();
            let mut held = HashMap::new();
            for (step, key) in steps {
                let name = key.to_string();
                match step {
                    0 => prop_assert_eq!(slots.remove(&name).is_some(), held.remove(&key).is_some()),
                    1 => prop_assert_eq!(slots.get(&name), held.get(&key)),
                    _ => match slots.put(&name, (key, step), max, |_| true) {
                        Put::Added => drop(held.insert(key, (key, step))),
                        Put::Replaced((gone, _)) => {
                            held.remove(&gone);
                            held.insert(key, (key, step));
                        }
                        Put::Full(_) => prop_assert!(false, "everything may go"),
                    },
                }
                prop_assert!(slots.len() <= max && slots.len() == held.len());
                for (key, thing) in &held {
                    prop_assert_eq!(slots.places.get(&*key.to_string()).map(|&at| slots.slots[at].thing), Some(*thing));
                }
            }
        }
    }
}
