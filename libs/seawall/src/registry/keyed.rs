//! A guard for each key.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use crate::breaker::{CircuitBreaker, State};
use crate::config::{ConfigError, Problems};
use crate::guard::{Guard, GuardBuilder};

/// A family of guards of one make, one for each key: host, tenant, shard. Made by
/// [`Registry::register_keyed`](crate::Registry::register_keyed). A handle: clones share everything.
///
/// It is bounded. When it is full, a guard that was not asked for lately makes room, but never one whose circuit is not
/// closed (a new one in its place would run into the peer that is known to be down) and never one that somebody holds.
/// If none can make room, the key shares one guard with all others for which there is none: the same policies without
/// a breaker, because the failures of one key say nothing about another. [`overflowed`](Keyed::overflowed) counts them.
#[derive(Clone)]
pub struct Keyed {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    slots: RwLock<Slots>,
    overflow: Guard,
    overflowed: AtomicU64,
    evicted: AtomicU64,
}

struct Slots {
    template: GuardBuilder,
    max: usize,
    places: HashMap<Box<str>, usize>,
    slots: Vec<Slot>,
    /// Where the search for one to make room goes on.
    hand: usize,
}

struct Slot {
    key: Box<str>,
    guard: Guard,
    /// Whether it was asked for since the hand last passed.
    touched: AtomicBool,
}

/// How many slots a search looks at: enough to find one in any ordinary crowd, and a bound on what one call can cost.
const SEARCH_MAX: usize = 64;

/// More guards than this are a cache of something else.
const GUARDS_MAX: usize = 1_000_000;

impl Keyed {
    pub(super) fn new(template: GuardBuilder, max: usize) -> Result<Self, ConfigError> {
        check_max(template.name(), max)?;
        let name: Arc<str> = template.name().into();
        let template = template.of_family(&name);
        let overflow = template.clone().named(format!("{name}[*]")).without_breaker().build()?;
        // The template is checked once, with the breaker that the overflow has not.
        template.clone().build()?;
        let slots = Slots { template, max, places: HashMap::new(), slots: Vec::new(), hand: 0 };
        let inner = Inner {
            name,
            slots: RwLock::new(slots),
            overflow,
            overflowed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        };
        Ok(Keyed { inner: Arc::new(inner) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The guard of this key, made if there is none yet.
    #[must_use]
    pub fn guard(&self, key: &str) -> Guard {
        {
            let slots = self.inner.slots.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = slots.places.get(key).map(|&place| &slots.slots[place]) {
                // Only written when it changes, so that readers share the line.
                if !slot.touched.load(Ordering::Relaxed) {
                    slot.touched.store(true, Ordering::Relaxed);
                }
                return slot.guard.clone();
            }
        }
        self.make(key)
    }

    #[cold]
    fn make(&self, key: &str) -> Guard {
        let mut slots = self.write();
        // Somebody else may have made it in the meantime.
        if let Some(&place) = slots.places.get(key) {
            return slots.slots[place].guard.clone();
        }
        let place = if slots.slots.len() < slots.max { Some(slots.slots.len()) } else { slots.make_room() };
        let Some(place) = place else {
            self.inner.overflowed.fetch_add(1, Ordering::Relaxed);
            return self.inner.overflow.clone();
        };
        let name = format!("{}[{key}]", self.inner.name);
        let guard = slots.template.clone().named(name).build().expect("the template was checked");
        if place < slots.slots.len() {
            self.inner.evicted.fetch_add(1, Ordering::Relaxed);
        }
        slots.put(place, key, guard.clone());
        guard
    }

    /// The guards that there are now, in no particular order.
    #[must_use]
    pub fn guards(&self) -> Vec<Guard> {
        let slots = self.inner.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.slots.iter().map(|slot| slot.guard.clone()).collect()
    }

    /// How often a key found no guard of its own.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.inner.overflowed.load(Ordering::Relaxed)
    }

    /// How often a guard made room for another.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.inner.evicted.load(Ordering::Relaxed)
    }

    /// Changes all guards of the family and those to come; or says what is wrong, and changes nothing. If there are more
    /// guards than `max`, those that can make room go as others come. Says whether anything changed.
    pub fn reconfigure(&self, builder: GuardBuilder, max: usize) -> Result<bool, ConfigError> {
        check_max(self.name(), max)?;
        let recipe = builder.recipe;
        let mut slots = self.write();
        let template = slots.template.clone().with_recipe(recipe);
        // Checked before anything is changed; the guards then can't refuse.
        template.clone().build()?;
        self.inner.overflow.reconfigure(template.clone().without_breaker())?;
        let mut changed = std::mem::replace(&mut slots.max, max) != max;
        for slot in &slots.slots {
            changed |= slot.guard.reconfigure(template.clone())?;
        }
        changed |= slots.template.recipe != template.recipe;
        slots.template = template;
        Ok(changed)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Slots> {
        self.inner.slots.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// A place whose guard can go, by a second chance: the hand goes round, takes the mark from those that were asked for,
    /// and stops at one that was not. One that nobody may take away is passed over.
    fn make_room(&mut self) -> Option<usize> {
        let count = self.slots.len();
        // Twice round takes every mark away, if there are few.
        for _ in 0..SEARCH_MAX.min(2 * count) {
            let place = self.hand % count;
            self.hand = place + 1;
            let slot = &self.slots[place];
            if !slot.touched.swap(false, Ordering::Relaxed) && slot.can_go() {
                // Where the bound was lowered, one more goes, so that the family shrinks to it.
                if count > self.max {
                    self.take_out(place);
                    return self.make_room();
                }
                return Some(place);
            }
        }
        None
    }

    fn take_out(&mut self, place: usize) {
        let gone = self.slots.swap_remove(place);
        self.places.remove(&gone.key);
        if let Some(moved) = self.slots.get(place) {
            self.places.insert(moved.key.clone(), place);
        }
    }

    fn put(&mut self, place: usize, key: &str, guard: Guard) {
        let slot = Slot { key: key.into(), guard, touched: AtomicBool::new(true) };
        self.places.insert(key.into(), place);
        if place < self.slots.len() {
            let gone = std::mem::replace(&mut self.slots[place], slot);
            self.places.remove(&gone.key);
        } else {
            self.slots.push(slot);
        }
    }
}

impl Slot {
    /// Nobody holds it (and nobody can come by one while the list is locked), and its circuit has nothing to tell.
    fn can_go(&self) -> bool {
        let closed =
            self.guard.breaker().map(CircuitBreaker::state).is_none_or(|state| state == State::Closed);
        closed && self.guard.is_unshared()
    }
}

fn check_max(name: &str, max: usize) -> Result<(), ConfigError> {
    let mut problems = Problems::default();
    problems.refuse_if(!(1..=GUARDS_MAX).contains(&max), "keys_max", || {
        format!("{max} guards are not between 1 and {GUARDS_MAX}")
    });
    problems.into_result(format!("guards `{name}`"), ())
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
