//! A guard for each key.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::guard::{Guard, GuardBuilder};
use crate::slots::Slots;

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
    /// Nobody is told anything while this is locked: whoever is told may look at the family.
    family: RwLock<Family>,
    /// One change at a time. The guards are changed one by one, with the family unlocked.
    changing: Mutex<()>,
    overflow: Guard,
    overflowed: AtomicU64,
    evicted: AtomicU64,
    clock: Clock,
    /// No room was found, and none is looked for until then, so that keys without a guard do not hold up those with one.
    full_until: AtomicU64,
}

struct Family {
    template: GuardBuilder,
    max: usize,
    guards: Slots<Guard>,
}

/// So long a search that found no room is not repeated.
const FULL_FOR: Duration = Duration::from_millis(10);

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
        let clock = template.goes_by().clone();
        let family = Family { template, max, guards: Slots::new() };
        let inner = Inner {
            name,
            family: RwLock::new(family),
            changing: Mutex::new(()),
            overflow,
            overflowed: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            clock,
            full_until: AtomicU64::new(0),
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
        let known = self.read().guards.get(key).cloned();
        known.unwrap_or_else(|| self.make_or_share(key))
    }

    #[cold]
    fn make_or_share(&self, key: &str) -> Guard {
        let now = self.inner.clock.now();
        if now.as_nanos() >= self.inner.full_until.load(Ordering::Relaxed) {
            if let Some(guard) = self.make(key) {
                return guard;
            }
            self.inner.full_until.store((now + FULL_FOR).as_nanos(), Ordering::Relaxed);
        }
        self.inner.overflowed.fetch_add(1, Ordering::Relaxed);
        self.inner.overflow.clone()
    }

    fn make(&self, key: &str) -> Option<Guard> {
        let mut family = self.write();
        let Family { template, max, guards } = &mut *family;
        // Somebody else may have made it in the meantime.
        if let Some(guard) = guards.get(key) {
            return Some(guard.clone());
        }
        let room = guards.make_room(*max, can_go);
        self.inner.evicted.fetch_add(room.gone.len() as u64, Ordering::Relaxed);
        if !room.is_there {
            return None;
        }
        let name = format!("{}[{key}]", self.inner.name);
        let guard = template.clone().named(name).build().expect("the template was checked");
        guards.add(key, guard.clone());
        Some(guard)
    }

    /// Forgets the guard of this key, whatever state it is in: for a host that is gone for good, whose circuit would be kept
    /// for ever. Whoever holds it can go on using it. Says whether there was one.
    #[expect(clippy::must_use_candidate, reason = "that it is gone is what was wanted")]
    pub fn forget(&self, key: &str) -> bool {
        self.inner.full_until.store(0, Ordering::Relaxed);
        self.write().guards.remove(key).is_some()
    }

    /// The guards that there are now, in no particular order.
    #[must_use]
    pub fn guards(&self) -> Vec<Guard> {
        self.read().guards.iter().cloned().collect()
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
        let _changing = self.inner.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let template = self.read().template.clone().with_recipe(builder.recipe);
        // Checked before anything is changed; the guards then can't refuse.
        template.clone().build()?;
        self.inner.overflow.reconfigure(template.clone().without_breaker())?;
        self.inner.full_until.store(0, Ordering::Relaxed);
        let (keys, mut changed) = self.write().change(template.clone(), max);
        for key in keys {
            // One that made room in the meantime needs no change, and one that came is made by the new template.
            let guard = self.read().guards.peek(&key).cloned();
            if let Some(guard) = guard {
                changed |= guard.reconfigure(template.clone())?;
            }
        }
        Ok(changed)
    }

    fn read(&self) -> RwLockReadGuard<'_, Family> {
        self.inner.family.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Family> {
        self.inner.family.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Family {
    /// For those to come; the keys of those that there are, and whether it is a change.
    fn change(&mut self, template: GuardBuilder, max: usize) -> (Vec<String>, bool) {
        let changed = self.max != max || self.template.recipe != template.recipe;
        (self.template, self.max) = (template, max);
        (self.guards.keys().map(str::to_owned).collect(), changed)
    }
}

/// Nobody holds it (and nobody can come by one while the list is locked), and its circuit has nothing to tell. Asked in this
/// order, because whoever holds it may open the circuit before he lets it go.
fn can_go(guard: &Guard) -> bool {
    guard.is_unshared() && guard.breaker().is_none_or(|circuit| circuit.is_closed())
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
