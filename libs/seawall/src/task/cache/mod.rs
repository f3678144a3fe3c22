//! Answers that are kept for a while, loaded once for all who ask.
#![doc = ""]
#![doc = include_str!("../../../docs/cache.md")]

#[cfg(feature = "task")]
mod config;
#[cfg(feature = "task")]
mod far;
#[cfg(feature = "task")]
mod invalidate;
#[cfg(feature = "task")]
mod loader;
#[cfg(feature = "task")]
mod memory;
#[cfg(feature = "task")]
mod scope;
pub(super) mod shard;
mod stats;
#[cfg(feature = "task")]
mod tier;

#[cfg(feature = "task")]
pub use config::{CAPACITY, CacheBuilder, FAR_TIMEOUT, JITTER, NOT_FOUND_TTL, TTL};
#[cfg(feature = "task")]
pub use far::{AsIs, Codec, Ear, Far, FarEntry, FarError, FarFuture, FarLook, Heard};
#[cfg(feature = "task")]
pub use loader::{Cache, Versioned};
#[cfg(feature = "task")]
pub use memory::MemoryFar;
#[cfg(feature = "task")]
pub use scope::Scoped;
pub use stats::Stats;

#[cfg(all(test, not(seawall_loom)))]
mod tests;
