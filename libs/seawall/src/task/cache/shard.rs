//! What is kept and what is being loaded, behind one lock: the rules of the cache without its waiting.
//!
//! Entries and loads stand together, so that a caller sees the one or the other and never neither: whoever finds no entry
//! and no load becomes the one who loads. A load has a *lease*, a number that an invalidation takes away: what comes back
//! with a lease that is gone is given to those who waited for it and not kept. So a load that began before an invalidation
//! never puts the old value back after it.
//!
//! What is taken out is handed to the caller, who drops it after the lock: a value may take its time to go, or ask the cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::stats::CacheStats;
use crate::clock::Tick;
use crate::slots::{Room, Slots};
use crate::task::SharedWorkError;
use crate::task::singleflight::Flight;

/// What a load ends with: found or not, or why there is no answer.
pub(crate) type Answer<V> = Result<Option<V>, SharedWorkError>;

pub(crate) struct Shard<V> {
    entries: Slots<Entry<V>>,
    loads: HashMap<Box<str>, Load<V>>,
    max: usize,
    last_lease: u64,
    pub(crate) stats: CacheStats,
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

impl<V> Entry<V> {
    /// A load has brought nothing better: this is handed out a while longer, and asked for again after a pause.
    fn pause(&mut self, now: Tick) {
        self.refresh_at = self.refresh_at.max(now + REFRESH_PAUSE);
    }
}

struct Load<V> {
    flight: Arc<Flight<Answer<V>>>,
    lease: u64,
    /// What those who wait want at least.
    version: u64,
}

/// The right to load one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lease {
    number: u64,
    /// What is wanted at least. That there is nothing is known of this version.
    pub(crate) version: u64,
}

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
        Shard {
            entries: Slots::new(),
            loads: HashMap::new(),
            max,
            last_lease: 0,
            stats: CacheStats::default(),
        }
    }

    /// Looks for an answer of at least this version.
    pub(crate) fn look(&mut self, key: &str, version: u64, now: Tick) -> Look<V> {
        let known = self.entries.get(key).filter(|entry| now < entry.dead_at && entry.version >= version);
        if let Some(entry) = known {
            let answer = entry.value.clone();
            self.stats.hits += 1;
            self.stats.stale_hits += u64::from(now >= entry.fresh_until);
            if now >= entry.refresh_at && !self.loads.contains_key(key) {
                // Whatever is less than what is known could not be kept.
                let version = version.max(entry.version);
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
        (Lease { number: lease, version }, flight)
    }

    /// A load has come back with something to keep; says whether it was kept, and what is to be dropped.
    pub(crate) fn store(
        &mut self,
        key: &str,
        lease: Lease,
        entry: Entry<V>,
        now: Tick,
    ) -> (bool, Vec<Entry<V>>) {
        if !self.end(key, lease) {
            self.stats.outdated += 1;
            return (false, vec![entry]);
        }
        // An older value never takes the place of a newer one.
        if let Some(old) = self.entries.get_mut(key) {
            if old.version > entry.version && now < old.dead_at {
                old.pause(now);
                self.stats.outdated += 1;
                return (false, vec![entry]);
            }
            return (true, vec![std::mem::replace(old, entry)]);
        }
        let mut room = self.entries.make_room(self.max, |old| now >= old.dead_at);
        if !room.is_there {
            // Nothing has expired where the hand looked: then whatever it finds.
            room = self.entries.make_room(self.max, |_| true);
        }
        let Room { is_there, mut gone } = room;
        self.stats.evicted += gone.len() as u64;
        if is_there {
            self.entries.add(key, entry);
        } else {
            gone.push(entry);
        }
        (is_there, gone)
    }

    /// A load has come back with nothing to keep.
    pub(crate) fn failed(&mut self, key: &str, lease: Lease, now: Tick) {
        self.stats.failed += 1;
        if self.end(key, lease)
            && let Some(entry) = self.entries.get_mut(key)
        {
            entry.pause(now);
        }
    }

    /// Ends a load; says whether its lease still stood.
    fn end(&mut self, key: &str, lease: Lease) -> bool {
        let stands = self.loads.get(key).is_some_and(|load| load.lease == lease.number);
        if stands {
            self.loads.remove(key);
        }
        stands
    }

    /// Forgets a key. Loads under way go on for those who wait for them, and are not kept; who comes now loads anew.
    #[must_use = "it is to be dropped after the lock"]
    pub(crate) fn invalidate(&mut self, key: &str) -> Option<Entry<V>> {
        self.stats.invalidated += 1;
        self.forget(key)
    }

    /// As [`invalidate`](Shard::invalidate), for a key that is counted already.
    #[must_use = "it is to be dropped after the lock"]
    pub(crate) fn forget(&mut self, key: &str) -> Option<Entry<V>> {
        self.loads.remove(key);
        self.entries.remove(key)
    }

    #[must_use = "it is to be dropped after the lock"]
    pub(crate) fn clear(&mut self) -> Slots<Entry<V>> {
        self.stats.invalidated += self.entries.len() as u64;
        self.loads.clear();
        std::mem::replace(&mut self.entries, Slots::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn loading(&self) -> usize {
        self.loads.len()
    }
}
