//! What a cache is told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::far::{Codec, Far};
use super::loader::Cache;
use crate::clock::Clock;
use crate::config::{ConfigError, Percent, Problems};
use crate::task::flight::WORK_TIMEOUT;

/// How long a value is fresh: short enough that an invalidation that was lost is mended within minutes.
pub const TTL: Duration = Duration::from_secs(300);
/// How long it is remembered that there is nothing: enough to stop a flood of questions for what does not exist, short
/// enough for whoever has just created it.
pub const NOT_FOUND_TTL: Duration = Duration::from_secs(30);
/// So many entries are kept in the process.
pub const CAPACITY: usize = 10_000;
/// How much of a lifetime is left to chance, so that what was loaded together does not expire together.
pub const JITTER: u8 = 10;
/// How long the far tier may take. A cache that is slower than this is no cache.
pub const FAR_TIMEOUT: Duration = Duration::from_millis(500);

/// A cache in the making.
#[must_use = "a cache is made by `build`"]
pub struct CacheBuilder<V> {
    pub(super) name: String,
    pub(super) settings: Settings,
    /// The usual one, or the lifetime of what is found if that is shorter.
    not_found_ttl: Option<Duration>,
    pub(super) capacity: usize,
    pub(super) far: Option<FarTier<V>>,
    pub(super) clock: Clock,
    pub(super) seed: Option<u64>,
}

/// Times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) ttl: Duration,
    pub(super) not_found_ttl: Duration,
    pub(super) max_stale: Duration,
    /// From this share of its lifetime on an entry is loaded anew.
    pub(super) refresh_ahead: Option<Percent>,
    pub(super) jitter: Percent,
    pub(super) load_timeout: Duration,
    pub(super) far_timeout: Duration,
}

/// A far tier and how values are written there.
pub(super) struct FarTier<V> {
    pub(super) far: Arc<dyn Far>,
    pub(super) codec: Arc<dyn Codec<V>>,
}

impl<V> CacheBuilder<V>
where
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new(name: String) -> Self {
        let settings = Settings {
            ttl: TTL,
            not_found_ttl: NOT_FOUND_TTL,
            max_stale: Duration::ZERO,
            refresh_ahead: None,
            jitter: JITTER.into(),
            load_timeout: WORK_TIMEOUT,
            far_timeout: FAR_TIMEOUT,
        };
        CacheBuilder {
            name,
            settings,
            not_found_ttl: None,
            capacity: CAPACITY,
            far: None,
            clock: Clock::default(),
            seed: None,
        }
    }

    /// How long a value is fresh.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long it is remembered that there is nothing; otherwise [as usual](NOT_FOUND_TTL), but not longer than a value lives.
    pub fn not_found_ttl(mut self, ttl: Duration) -> Self {
        self.not_found_ttl = Some(ttl);
        self
    }

    /// How much of each lifetime is left to chance.
    pub fn jitter(mut self, share: impl Into<Percent>) -> Self {
        self.settings.jitter = share.into();
        self
    }

    /// Hands out what is past its time for this much longer, while it is loaded anew in the background; also if loading
    /// fails.
    pub fn stale_for(mut self, max_stale: Duration) -> Self {
        self.settings.max_stale = max_stale;
        self
    }

    /// Loads anew in the background what is asked for in the last part of its lifetime, from this share of it on.
    pub fn refresh_after(mut self, share: impl Into<Percent>) -> Self {
        self.settings.refresh_ahead = Some(share.into());
        self
    }

    /// How long a load may take, whoever waits for it.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.settings.load_timeout = timeout;
        self
    }

    /// How many entries are kept in the process.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// Also keeps entries in a far tier, which processes share.
    pub fn far(mut self, far: impl Far, codec: impl Codec<V>) -> Self {
        self.far = Some(FarTier { far: Arc::new(far), codec: Arc::new(codec) });
        self
    }

    /// How long the far tier may take before it is passed over.
    pub fn far_timeout(mut self, timeout: Duration) -> Self {
        self.settings.far_timeout = timeout;
        self
    }

    /// The clock that it goes by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Fixes what is left to chance, so that a test is exact.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the cache, or says everything that is wrong with it at once.
    pub fn build(mut self) -> Result<Cache<V>, ConfigError> {
        let mut problems = Problems::default();
        self.settings.not_found_ttl = self.not_found_ttl.unwrap_or(NOT_FOUND_TTL.min(self.settings.ttl));
        let Settings { ttl, not_found_ttl, max_stale, refresh_ahead, jitter, load_timeout, far_timeout } =
            self.settings;
        let year = Duration::from_secs(365 * 86_400);
        problems.refuse_if(ttl.is_zero() || ttl > year, "ttl", || {
            format!("{ttl:?} is not between 1 ns and a year; without a lifetime a lost invalidation is never mended")
        });
        problems.refuse_if(not_found_ttl > ttl, "not_found_ttl", || {
            format!("{not_found_ttl:?} is longer than what is found lives ({ttl:?}); 30 s is usual")
        });
        problems.refuse_if(max_stale > year, "stale_for", || format!("{max_stale:?} is longer than a year"));
        problems.refuse_if(!jitter.is_share() || jitter.millionths() > 500_000, "jitter", || {
            format!("{jitter} is not between 0 % and 50 %; 10 is usual")
        });
        problems.refuse_if(
            refresh_ahead.is_some_and(|share| !(100_000..1_000_000).contains(&share.millionths())),
            "refresh_after",
            || "the share of the lifetime is not between 10 % and just below 100 %; 80 is usual".into(),
        );
        problems.refuse_if(load_timeout.is_zero(), "load_timeout", || "zero would fail every load".into());
        problems
            .refuse_if(far_timeout.is_zero(), "far_timeout", || "zero would pass over the far tier".into());
        problems.refuse_if(!(1..=100_000_000).contains(&self.capacity), "capacity", || {
            format!("{} entries are not between 1 and a hundred million", self.capacity)
        });
        problems.into_result(format!("cache `{}`", self.name), ())?;
        Ok(Cache::new(self))
    }
}

impl<V> fmt::Debug for CacheBuilder<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheBuilder")
            .field("name", &self.name)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
