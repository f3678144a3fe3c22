//! The builder of a cache, its defaults and their validation.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::loader::Cache;
use super::remote::{Codec, RemoteCache};
use crate::clock::Clock;
use crate::config::{ConfigError, Percent, Problems};
use crate::task::singleflight::WORK_TIMEOUT;

/// The default lifetime of a value. It is short enough that a lost invalidation does harm for minutes only.
pub const TTL: Duration = Duration::from_secs(300);
/// The default lifetime of "this key does not exist". It is long enough to stop a flood of lookups for a missing key, and
/// short enough for a user who has just created it.
pub const NOT_FOUND_TTL: Duration = Duration::from_secs(30);
/// The default maximum number of entries in the process.
pub const CAPACITY: usize = 10_000;
/// The default random part of a lifetime, in per cent. It keeps entries that were loaded together from expiring together.
pub const JITTER: u8 = 10;
/// The default time limit of the remote cache. A slower one is not worth asking.
pub const REMOTE_TIMEOUT: Duration = Duration::from_millis(500);

/// Configures a [`Cache`]. [`Cache::builder`] creates it.
#[must_use = "call `build` to get the cache"]
pub struct CacheBuilder<V> {
    pub(super) name: String,
    pub(super) settings: Settings,
    /// Without a value, [`NOT_FOUND_TTL`] or `ttl` applies, whichever is shorter.
    not_found_ttl: Option<Duration>,
    pub(super) capacity: usize,
    pub(super) remote: Option<RemoteTier<V>>,
    pub(super) clock: Clock,
    pub(super) seed: Option<u64>,
}

/// The times of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) ttl: Duration,
    pub(super) not_found_ttl: Duration,
    pub(super) max_stale: Duration,
    /// The share of its lifetime after which the cache refreshes an entry in the background.
    pub(super) refresh_ahead: Option<Percent>,
    pub(super) jitter: Percent,
    pub(super) load_timeout: Duration,
    pub(super) remote_timeout: Duration,
}

/// A remote cache and the codec for its values.
pub(super) struct RemoteTier<V> {
    pub(super) cache: Arc<dyn RemoteCache>,
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
            remote_timeout: REMOTE_TIMEOUT,
        };
        CacheBuilder {
            name,
            settings,
            not_found_ttl: None,
            capacity: CAPACITY,
            remote: None,
            clock: Clock::default(),
            seed: None,
        }
    }

    /// Sets how long a value is fresh; [`TTL`] by default.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// Sets how long the cache remembers that a key does not exist; by default [`NOT_FOUND_TTL`], or the lifetime of a value if
    /// that is shorter.
    pub fn not_found_ttl(mut self, ttl: Duration) -> Self {
        self.not_found_ttl = Some(ttl);
        self
    }

    /// Sets the random part of each lifetime; [`JITTER`] by default.
    pub fn jitter(mut self, share: impl Into<Percent>) -> Self {
        self.settings.jitter = share.into();
        self
    }

    /// Serves an expired value for this much longer while a load in the background refreshes it, also if that load fails. By
    /// default an expired value is a miss.
    pub fn stale_for(mut self, max_stale: Duration) -> Self {
        self.settings.max_stale = max_stale;
        self
    }

    /// Refreshes an entry in the background when a caller asks for it after this share of its lifetime. By default the cache
    /// does not refresh ahead.
    pub fn refresh_after(mut self, share: impl Into<Percent>) -> Self {
        self.settings.refresh_ahead = Some(share.into());
        self
    }

    /// Sets the time limit of a load; [`WORK_TIMEOUT`] by default.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.settings.load_timeout = timeout;
        self
    }

    /// Sets the maximum number of entries in the process; [`CAPACITY`] by default.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// Adds a remote cache that several processes share as the second tier.
    pub fn remote(mut self, cache: impl RemoteCache, codec: impl Codec<V>) -> Self {
        self.remote = Some(RemoteTier { cache: Arc::new(cache), codec: Arc::new(codec) });
        self
    }

    /// Sets the time limit of the remote cache; [`REMOTE_TIMEOUT`] by default. A slower answer counts as a miss.
    pub fn remote_timeout(mut self, timeout: Duration) -> Self {
        self.settings.remote_timeout = timeout;
        self
    }

    /// Sets the clock that measures lifetimes and limits.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the seed of the jitter, so that a test is deterministic.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the cache.
    ///
    /// # Errors
    /// Returns all invalid settings at once.
    pub fn build(mut self) -> Result<Cache<V>, ConfigError> {
        let mut problems = Problems::default();
        self.settings.not_found_ttl = self.not_found_ttl.unwrap_or(NOT_FOUND_TTL.min(self.settings.ttl));
        let Settings { ttl, not_found_ttl, max_stale, refresh_ahead, jitter, load_timeout, remote_timeout } =
            self.settings;
        let year = Duration::from_secs(365 * 86_400);
        problems.refuse_if(ttl.is_zero() || ttl > year, "ttl", || {
            format!("{ttl:?} is not between 1 ns and a year; without a lifetime a lost invalidation is never mended")
        });
        problems.refuse_if(not_found_ttl > ttl, "not_found_ttl", || {
            format!("{not_found_ttl:?} is longer than what is found lives ({ttl:?}); 30 s is usual")
        });
        problems.refuse_if(max_stale > year, "stale_for", || format!("{max_stale:?} is longer than a year"));
        let at_most_half = |share: Percent| share.is_share() && share.millionths() <= 500_000;
        jitter.check("jitter", &mut problems, at_most_half, || {
            format!("{jitter} is not between 0 % and 50 %; 10 is usual")
        });
        refresh_ahead.unwrap_or(80.into()).check(
            "refresh_after",
            &mut problems,
            |share| (100_000..1_000_000).contains(&share.millionths()),
            || "the share of the lifetime is not between 10 % and just below 100 %; 80 is usual".into(),
        );
        problems.refuse_if(load_timeout.is_zero(), "load_timeout", || "zero would fail every load".into());
        problems.refuse_if(remote_timeout.is_zero(), "remote_timeout", || {
            "zero would pass over the remote cache".into()
        });
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
