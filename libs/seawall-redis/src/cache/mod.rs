//! A cache that degrades when Redis is away, and a remote cache for `seawall`'s cache loader.
#![doc = ""]
#![doc = include_str!("../../docs/cache.md")]

mod adapter;
mod config;
mod error;
mod format;
#[cfg(feature = "json")]
mod json;
mod listener;
mod log;
mod metrics;
mod remote;
mod script;

pub use adapter::{KEY_CHARS_MAX, RedisCache, TTL_MAX};
pub use config::{
    BREAKER_COOLDOWN, BREAKER_FAILURE_RATE, BREAKER_MINIMUM_CALLS, BREAKER_PROBES, BREAKER_WINDOW,
    GUARD_NAME, RedisCacheBuilder, TIME_LIMIT, default_guard,
};
pub use error::CacheError;
pub use format::{EMPTY_MARKER, EntryFormat};
#[cfg(feature = "json")]
pub use json::JsonCodec;
pub use listener::{PING_INTERVAL, SUBSCRIBE_PAUSE, SUBSCRIBE_PAUSE_MAX};
pub use log::LINES_PER_SECOND;
#[cfg(feature = "metrics")]
pub use metrics::{NAMES, describe};
pub use remote::{CHANNEL, LEASE_TTL, RedisRemoteCache, RedisRemoteCacheBuilder};
