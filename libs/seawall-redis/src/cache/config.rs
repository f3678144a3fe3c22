//! The builder of the cache and its defaults.

use std::time::Duration;

use seawall::task::cache::RawCodec;
use seawall::{Breaker, ConfigError, Guard, GuardBuilder};

use super::adapter::RedisCache;
use super::log::{LINES_PER_SECOND, log_transitions};
use crate::{ABANDONED_AFTER, Connection};

/// The default name of the guard, in its metrics and in what it says.
pub const GUARD_NAME: &str = "redisCache";
/// The default time limit of an operation. A cache that takes longer is slower than what it spares.
pub const TIME_LIMIT: Duration = Duration::from_secs(2);
/// The default share of failed operations that opens the circuit, in per cent. It is high, because a miss costs a query only,
/// and an open circuit makes every lookup one.
pub const BREAKER_FAILURE_RATE: u8 = 80;
/// The default number of operations that the share is taken of.
pub const BREAKER_WINDOW: u32 = 10;
/// The default number of operations below which the share means nothing.
pub const BREAKER_MINIMUM_CALLS: u32 = 5;
/// The default number of operations that a circuit lets through to find out whether Redis is back.
pub const BREAKER_PROBES: u32 = 3;
/// The default time for which an open circuit asks nothing of Redis.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);

/// The guard that a cache has unless told otherwise: a circuit breaker and a time limit, and no retries, because the query that
/// a miss costs is the better second attempt.
///
/// A caller that gives up on an operation after [`ABANDONED_AFTER`] counts as a failure, so that the circuit opens also where
/// callers are less patient than the time limit.
pub fn default_guard(name: impl Into<String>) -> GuardBuilder {
    let breaker = Breaker::failure_rate(BREAKER_FAILURE_RATE)
        .over_calls(BREAKER_WINDOW)
        .minimum_calls(BREAKER_MINIMUM_CALLS)
        .probes(BREAKER_PROBES)
        .judge_probes_together()
        .cooldown(BREAKER_COOLDOWN)
        .automatic_half_open()
        .abandoned_after(ABANDONED_AFTER);
    log_transitions(Guard::builder(name).attempt_timeout(TIME_LIMIT).no_retry().breaker(breaker))
}

/// Configures a [`RedisCache`]. [`RedisCache::builder`] creates it.
#[must_use = "call `build` to get the cache"]
#[derive(Debug)]
pub struct RedisCacheBuilder<C = RawCodec> {
    pub(super) connection: Connection,
    pub(super) codec: C,
    pub(super) prefix: String,
    pub(super) guard: GuardBuilder,
    pub(super) lines_per_second: u32,
}

impl RedisCacheBuilder {
    pub(super) fn new(connection: Connection) -> Self {
        RedisCacheBuilder {
            connection,
            codec: RawCodec,
            prefix: String::new(),
            guard: default_guard(GUARD_NAME),
            lines_per_second: LINES_PER_SECOND,
        }
    }
}

impl<C> RedisCacheBuilder<C> {
    /// Sets the codec of the values; [`RawCodec`], for strings and bytes, by default.
    pub fn codec<D>(self, codec: D) -> RedisCacheBuilder<D> {
        let RedisCacheBuilder { connection, prefix, guard, lines_per_second, .. } = self;
        RedisCacheBuilder { connection, codec, prefix, guard, lines_per_second }
    }

    /// Sets what stands before each key in Redis; nothing by default.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the guard around reads and writes; [`default_guard`] with the name [`GUARD_NAME`] by default. The name of the guard
    /// is the label `cache` of the metrics.
    pub fn guard(mut self, guard: GuardBuilder) -> Self {
        self.guard = guard;
        self
    }

    /// Sets the maximum number of lines per second of each kind of warning and error; [`LINES_PER_SECOND`] by default. The next
    /// line says how many were left out.
    pub fn lines_per_second(mut self, lines: u32) -> Self {
        self.lines_per_second = lines;
        self
    }

    /// Builds the cache.
    ///
    /// # Errors
    /// Returns the invalid settings of the guard.
    pub fn build(self) -> Result<RedisCache<C>, ConfigError> {
        RedisCache::from_builder(self)
    }
}
