//! A cache that loads each missing value once for all callers.
#![doc = ""]
#![doc = include_str!("../../../docs/cache.md")]

#[cfg(feature = "task")]
mod config;
#[cfg(feature = "task")]
mod invalidate;
#[cfg(feature = "task")]
mod loader;
#[cfg(feature = "task")]
mod memory;
#[cfg(feature = "task")]
mod remote;
#[cfg(feature = "task")]
mod scope;
pub(super) mod shard;
mod stats;
#[cfg(feature = "task")]
mod tier;

#[cfg(feature = "task")]
pub use config::{CAPACITY, CacheBuilder, JITTER, NOT_FOUND_TTL, REMOTE_TIMEOUT, TTL};
#[cfg(feature = "task")]
pub use loader::{Cache, VersionedValue};
#[cfg(feature = "task")]
pub use memory::MemoryRemoteCache;
#[cfg(feature = "task")]
pub use remote::{
    Codec, Invalidation, InvalidationListener, RawCodec, RemoteCache, RemoteEntry, RemoteError, RemoteFuture,
    RemoteLookup,
};
#[cfg(feature = "task")]
pub use scope::ScopedCache;
pub use stats::CacheStats;

#[cfg(all(test, not(seawall_loom)))]
mod tests;
