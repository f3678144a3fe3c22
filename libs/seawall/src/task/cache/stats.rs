//! What happened in a cache so far.

use std::ops::AddAssign;

/// What happened in a cache so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Answers that were known in this process.
    pub hits: u64,
    /// Of these, answers that were handed out although they were past their time.
    pub stale_hits: u64,
    /// Answers that were not known in this process.
    pub misses: u64,
    /// Of these, callers that waited for a load of somebody else's.
    pub joined: u64,
    /// Loads that were started.
    pub loads: u64,
    /// Of these, loads that the far tier answered.
    pub far_hits: u64,
    /// Loads that failed, panicked or ran out of time.
    pub failed: u64,
    /// What was loaded and not kept, because it was invalidated or outdated meanwhile.
    pub outdated: u64,
    /// Entries that made room for others.
    pub evicted: u64,
    /// Keys that were invalidated.
    pub invalidated: u64,
    /// Troubles with the far tier, each of which was taken for a miss.
    pub far_errors: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Stats) {
        self.hits += other.hits;
        self.stale_hits += other.stale_hits;
        self.misses += other.misses;
        self.joined += other.joined;
        self.loads += other.loads;
        self.far_hits += other.far_hits;
        self.failed += other.failed;
        self.outdated += other.outdated;
        self.evicted += other.evicted;
        self.invalidated += other.invalidated;
        self.far_errors += other.far_errors;
    }
}
