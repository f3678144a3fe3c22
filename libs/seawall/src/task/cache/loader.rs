//! The cache itself: lookups, loads and their completion.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::config::{CacheBuilder, RemoteTier, Settings};
use super::shard::{Answer, Entry, Lease, Look, Shard};
use super::stats::CacheStats;
use super::tier::RemoteAnswer;
use crate::chance::{Chance, entropy, fraction};
use crate::clock::{Clock, Tick};
use crate::task::bounded::bounded;
use crate::task::singleflight::{Flight, Waiting};
use crate::task::{SharedWorkError, in_caller_span, start};

/// A cache that loads each missing value once for all callers that ask at the same time. It is a handle: clones share their
/// state.
///
/// [The module](super) describes its behaviour.
pub struct Cache<V> {
    pub(super) inner: Arc<Inner<V>>,
}

pub(super) struct Inner<V> {
    pub(super) name: Box<str>,
    pub(super) shards: Box<[Mutex<Shard<V>>]>,
    pub(super) settings: Settings,
    pub(super) remote: Option<RemoteTier<V>>,
    pub(super) clock: Clock,
    chance: Chance,
}

/// A value with the version that its origin gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionedValue<V> {
    /// The value.
    pub value: V,
    /// The version of the value. A higher version is newer.
    pub version: u64,
}

impl<V> Cache<V>
where
    V: Clone + Send + Sync + 'static,
{
    /// Starts to configure a cache with this name.
    pub fn builder(name: impl Into<String>) -> CacheBuilder<V> {
        CacheBuilder::new(name.into())
    }

    pub(super) fn new(builder: CacheBuilder<V>) -> Self {
        // A part for each hundred entries, so that the bound holds for each without wasting much of it.
        let parts = (builder.capacity / 128).clamp(1, 16).next_power_of_two();
        let shard = |_| Mutex::new(Shard::new(builder.capacity / parts));
        let inner = Inner {
            name: builder.name.into(),
            shards: (0..parts).map(shard).collect(),
            settings: builder.settings,
            remote: builder.remote,
            clock: builder.clock,
            chance: Chance::seeded(builder.seed.unwrap_or_else(entropy)),
        };
        Cache { inner: Arc::new(inner) }
    }

    /// Returns the cached value of this key, or calls `loader` and caches what it returns. `None` means that the value does not
    /// exist.
    ///
    /// Of all callers that ask at the same time, one loads and all get the result. The load belongs to none of them: a caller
    /// that drops the future stops waiting, and the cache still stores the result.
    ///
    /// Put everything that the answer depends on into the key, including the tenant and the rights of the caller; see
    /// [`scoped`](Cache::scoped).
    ///
    /// # Errors
    /// Returns the failure of the load, if no value is cached that the cache may still serve.
    pub async fn load<F, Fut, E>(&self, key: &str, loader: F) -> Result<Option<V>, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<V>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let load =
            async move || Ok::<_, E>(loader().await?.map(|value| VersionedValue { value, version: 0 }));
        self.answer(key, 0, load).await
    }

    /// Works like [`load`](Cache::load) for values with versions. A cached value counts only if its version is at least
    /// `version`, and an older value never replaces a newer one. "Does not exist" counts for the version that the caller asked
    /// for.
    ///
    /// # Errors
    /// Returns the failure of the load, as [`load`](Cache::load) does.
    pub async fn load_version<F, Fut, E>(
        &self,
        key: &str,
        version: u64,
        loader: F,
    ) -> Result<Option<V>, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<VersionedValue<V>>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.answer(key, version, loader).await
    }

    async fn answer<F, Fut, E>(
        &self,
        key: &str,
        version: u64,
        loader: F,
    ) -> Result<Option<V>, SharedWorkError>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<VersionedValue<V>>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let flight = match self.inner.look(key, version) {
            Look::Hit(answer) => return Ok(answer),
            Look::HitAndLoad(answer, lease, flight) => {
                // What the remote cache has is taken only if it would not be due to be loaded anew itself.
                self.begin(key, self.inner.last_part(), (lease, flight), loader);
                return Ok(answer);
            }
            Look::Join(flight) => flight,
            Look::Load(lease, flight) => {
                self.begin(key, Duration::ZERO, (lease, flight.clone()), loader);
                flight
            }
        };
        Waiting::new(flight).await
    }

    /// Starts a load that belongs to no caller.
    fn begin<F, Fut, E>(
        &self,
        key: &str,
        at_least: Duration,
        (lease, flight): (Lease, Arc<Flight<Answer<V>>>),
        loader: F,
    ) where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<VersionedValue<V>>, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let landing = Landing { cache: self.inner.clone(), key: key.into(), lease, flight };
        start(in_caller_span(async move {
            let inner = landing.cache.clone();
            let limit = inner.settings.load_timeout;
            let (found, left, remote_lease) =
                match inner.look_remote(&landing.key, lease.version, at_least).await {
                    RemoteAnswer::Hit(entry, left) => (Ok(entry), left, None),
                    RemoteAnswer::Miss(lease) => {
                        let load = async move || loader().await.map_err(SharedWorkError::of);
                        let loaded = bounded(load, limit, &inner.clock).await;
                        (loaded.and_then(|done| done), Duration::MAX, lease)
                    }
                };
            let Some((key, entry)) = landing.land(found, left) else { return };
            // Those who waited have their answer; only now is it written where it takes time.
            if let Some(lease) = remote_lease {
                inner.keep_remote(&key, &entry, lease).await;
            }
        }));
    }

    /// Returns the name of the cache.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the number of entries in the process, including expired entries that no caller has asked for since.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Returns true if there are no entries in the process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of loads in progress.
    #[must_use]
    pub fn loading(&self) -> usize {
        self.inner.shards.iter().map(|shard| lock(shard).loading()).sum()
    }

    /// Returns the counters of the cache.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let mut stats = CacheStats::default();
        self.inner.shards.iter().for_each(|shard| stats += lock(shard).stats);
        stats
    }
}

pub(super) fn lock<V>(shard: &Mutex<Shard<V>>) -> MutexGuard<'_, Shard<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V: Clone + 'static> Inner<V> {
    fn look(&self, key: &str, version: u64) -> Look<V> {
        let now = self.clock.now();
        self.shard(key).look(key, version, now)
    }

    pub(super) fn shard(&self, key: &str) -> MutexGuard<'_, Shard<V>> {
        // The map inside has a hash that nobody can foresee; here a cheap one is enough.
        let hash = key
            .bytes()
            .fold(0_usize, |hash, byte| (hash.rotate_left(5) ^ usize::from(byte)).wrapping_mul(0x9E37_79B9));
        lock(&self.shards[(hash >> 16) & (self.shards.len() - 1)])
    }

    /// The last part of a lifetime, in which an entry is loaded anew.
    fn last_part(&self) -> Duration {
        let Settings { ttl, refresh_ahead, .. } = self.settings;
        refresh_ahead.map_or(Duration::ZERO, |from| share(ttl, 1e6 - from.millionths() as f64))
    }

    /// How long something that was found or not found just now lives, with its chance in it; at most for what is `left` to
    /// it where it comes from.
    fn entry(&self, found: Option<VersionedValue<V>>, asked: u64, left: Duration, now: Tick) -> Entry<V> {
        let Settings { ttl, not_found_ttl, max_stale, refresh_ahead, jitter, .. } = self.settings;
        let full = if found.is_some() { ttl } else { not_found_ttl }.min(left);
        let jittered = jitter.millionths() as f64 * fraction(self.chance.next());
        let ttl = full.saturating_sub(share(full, jittered));
        let fresh_until = now + ttl;
        // That there is nothing is not stretched: whoever has created it waits for it.
        let dead_at = if found.is_some() { fresh_until + max_stale } else { fresh_until };
        let refresh_at = match refresh_ahead.filter(|_| found.is_some()) {
            Some(from) => now + share(ttl, from.millionths() as f64),
            None => fresh_until,
        };
        // Nothing has no version of its own: there was nothing when this version was asked for.
        let version = found.as_ref().map_or(asked, |found| found.version);
        Entry { value: found.map(|found| found.value), version, refresh_at, fresh_until, dead_at }
    }
}

fn share(of: Duration, millionths: f64) -> Duration {
    Duration::from_nanos((of.as_nanos() as f64 * millionths / 1e6) as u64)
}

/// The duty to end a load. Dropped without a result it ends it as lost, so that nobody waits for ever.
struct Landing<V: Clone + 'static> {
    cache: Arc<Inner<V>>,
    key: Box<str>,
    lease: Lease,
    flight: Arc<Flight<Answer<V>>>,
}

impl<V: Clone + 'static> Landing<V> {
    /// Keeps what was found, if it may be kept, and tells those who wait. Kept first: who comes in between finds the one
    /// or the other. Returns what a remote cache should know too.
    fn land(
        self,
        found: Result<Option<VersionedValue<V>>, SharedWorkError>,
        left: Duration,
    ) -> Option<(Box<str>, Entry<V>)> {
        match found {
            Ok(found) => {
                let now = self.cache.clock.now();
                let answer = found.as_ref().map(|found| found.value.clone());
                let entry = self.cache.entry(found, self.lease.version, left, now);
                let copy = entry.clone();
                let (kept, gone) = self.cache.shard(&self.key).store(&self.key, self.lease, copy, now);
                drop(gone);
                self.flight.land(Ok(answer));
                kept.then(|| (self.key.clone(), entry))
            }
            Err(failure) => {
                self.fail(failure);
                None
            }
        }
    }

    fn fail(&self, failure: SharedWorkError) {
        let now = self.cache.clock.now();
        self.cache.shard(&self.key).failed(&self.key, self.lease, now);
        self.flight.land(Err(failure));
    }
}

impl<V: Clone + 'static> Drop for Landing<V> {
    fn drop(&mut self) {
        if !self.flight.has_landed() {
            self.fail(SharedWorkError::Lost);
        }
    }
}

impl<V> Clone for Cache<V> {
    fn clone(&self) -> Self {
        Cache { inner: self.inner.clone() }
    }
}

impl<V> fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
