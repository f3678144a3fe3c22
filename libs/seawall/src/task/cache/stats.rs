//! The counters of a cache.

use std::ops::AddAssign;

/// The counters of a [`Cache`](super::Cache) since it was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Lookups that the local tier answered.
    pub hits: u64,
    /// The part of `hits` that returned a stale value.
    pub stale_hits: u64,
    /// Lookups that the local tier could not answer.
    pub misses: u64,
    /// The part of `misses` that waited for the load of another caller.
    pub joined: u64,
    /// Loads that the cache started.
    pub loads: u64,
    /// The part of `loads` that the remote cache answered.
    pub remote_hits: u64,
    /// Loads that failed, panicked or timed out.
    pub failed: u64,
    /// Loaded values that the cache did not store, because an invalidation or a newer value came first.
    pub outdated: u64,
    /// Entries that the cache removed to make room for others.
    pub evicted: u64,
    /// Keys that a caller or a remote message invalidated.
    pub invalidated: u64,
    /// Errors of the remote cache. The cache treated each of them as a miss.
    pub remote_errors: u64,
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: CacheStats) {
        self.hits += other.hits;
        self.stale_hits += other.stale_hits;
        self.misses += other.misses;
        self.joined += other.joined;
        self.loads += other.loads;
        self.remote_hits += other.remote_hits;
        self.failed += other.failed;
        self.outdated += other.outdated;
        self.evicted += other.evicted;
        self.invalidated += other.invalidated;
        self.remote_errors += other.remote_errors;
    }
}
