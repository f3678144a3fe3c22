//! What is kept and what is being loaded, behind one lock: the rules of the cache without its waiting.
//!
//! Entries and loads stand together, so that a caller sees the one or the other and never neither: whoever finds no entry
//! and no load becomes the one who loads. A load has a *lease*, a number that an invalidation takes away: what comes back
//! with a lease that is gone is given to those who waited for it and not kept. So a load that began before an invalidation
//! never puts the old value back after it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::stats::Stats;
use crate::clock::Tick;
use crate::slots::Slots;
use crate::task::Failure;
use crate::task::flight::Flight;

/// What a load ends with: found or not, or why there is no answer.
pub(crate) type Answer<V> = Result<Option<V>, Failure>;

pub(crate) struct Shard<V> {
    entries: Slots<Entry<V>>,
    loads: HashMap<Box<str>, Load<V>>,
    max: usize,
    last_lease: u64,
    pub(crate) stats: Stats,
}

/// Something that is known: a value, or that there is none.
#[derive(Clone, Debug)]
pub(crate) struct Entry<V> {
    pub(crate) value: Option<V>,
    pub(crate) version: u64,
    /// From here on it is loaded anew while it is still handed out.
    pub(crate) refresh_at: Tick,
    /// From here on it is stale.
    pub(crate) fresh_until: Tick,
    /// From here on it is not handed out any more.
    pub(crate) dead_at: Tick,
}

struct Load<V> {
    flight: Arc<Flight<Answer<V>>>,
    lease: u64,
    /// What those who wait want at least.
    version: u64,
}

/// The right to load one key, and what it is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lease(pub(crate) u64);

/// What a caller gets.
pub(crate) enum Look<V> {
    /// An answer that is known.
    Hit(Option<V>),
    /// An answer that is known but should be loaded anew, by this caller.
    HitAndLoad(Option<V>, Lease, Arc<Flight<Answer<V>>>),
    /// Somebody else is loading it.
    Join(Arc<Flight<Answer<V>>>),
    /// This caller has to load it.
    Load(Lease, Arc<Flight<Answer<V>>>),
}

/// A refresh that failed is not tried again at once.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);

impl<V: Clone> Shard<V> {
    pub(crate) fn new(max: usize) -> Self {
        Shard { entries: Slots::new(), loads: HashMap::new(), max, last_lease: 0, stats: Stats::default() }
    }

    /// Looks for an answer of at least this version.
    pub(crate) fn look(&mut self, key: &str, version: u64, now: Tick) -> Look<V> {
        let known = self.entries.get(key).filter(|entry| now < entry.dead_at && entry.version >= version);
        if let Some(entry) = known {
            let answer = entry.value.clone();
            self.stats.hits += 1;
            self.stats.stale_hits += u64::from(now >= entry.fresh_until);
            if now >= entry.refresh_at && !self.loads.contains_key(key) {
                let (lease, flight) = self.begin(key, version);
                return Look::HitAndLoad(answer, lease, flight);
            }
            return Look::Hit(answer);
        }
        self.stats.misses += 1;
        match self.loads.get(key) {
            // A load that began for less may bring less; it goes on for those who wait for it.
            Some(load) if load.version >= version => {
                self.stats.joined += 1;
                Look::Join(load.flight.clone())
            }
            _ => {
                let (lease, flight) = self.begin(key, version);
                Look::Load(lease, flight)
            }
        }
    }

    fn begin(&mut self, key: &str, version: u64) -> (Lease, Arc<Flight<Answer<V>>>) {
        self.last_lease += 1;
        let (lease, flight) = (self.last_lease, Flight::new());
        self.loads.insert(key.into(), Load { flight: flight.clone(), lease, version });
        self.stats.loads += 1;
        (Lease(lease), flight)
    }

    /// A load has come back with something to keep; says whether it was kept.
    pub(crate) fn store(&mut self, key: &str, lease: Lease, entry: Entry<V>, now: Tick) -> bool {
        if !self.end(key, lease) {
            self.stats.outdated += 1;
            return false;
        }
        // An older value never takes the place of a newer one.
        if self.entries.get(key).is_some_and(|old| old.version > entry.version && now < old.dead_at) {
            self.stats.outdated += 1;
            return false;
        }
        if let Some(old) = self.entries.get_mut(key) {
            *old = entry;
            return true;
        }
        let mut room = self.entries.make_room(self.max, |old| now >= old.dead_at);
        if !room.is_there {
            // Nothing has expired where the hand looked: then whatever it finds.
            room = self.entries.make_room(self.max, |_| true);
        }
        self.stats.evicted += room.made_by as u64;
        if room.is_there {
            self.entries.add(key, entry);
        }
        room.is_there
    }

    /// A load has come back with nothing to keep.
    pub(crate) fn failed(&mut self, key: &str, lease: Lease, now: Tick) {
        self.stats.failed += 1;
        if self.end(key, lease)
            && let Some(entry) = self.entries.get_mut(key)
        {
            // What is still there is handed out a while longer, and asked for again after a pause.
            entry.refresh_at = now + REFRESH_PAUSE;
        }
    }

    /// Ends a load; says whether its lease still stood.
    fn end(&mut self, key: &str, lease: Lease) -> bool {
        let stands = self.loads.get(key).is_some_and(|load| load.lease == lease.0);
        if stands {
            self.loads.remove(key);
        }
        stands
    }

    /// Forgets a key. Loads under way go on for those who wait for them, and are not kept; who comes now loads anew.
    pub(crate) fn invalidate(&mut self, key: &str) {
        self.entries.remove(key);
        self.loads.remove(key);
        self.stats.invalidated += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.stats.invalidated += self.entries.len() as u64;
        self.entries.clear();
        self.loads.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn loading(&self) -> usize {
        self.loads.len()
    }
}
