//! Seawall keeps a system standing when what it depends on breaks.
//!
//! A [`Guard`] is a named set of policies around one dependency: timeouts, retries with a budget, a circuit
//! breaker. It is one handle, one future and one error, and on the way of a call that succeeds it neither
//! allocates nor takes a lock of its own.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use seawall::{Breaker, Guard, Retry, secs};
//!
//! let inventory = Guard::builder("inventory")
//!     .attempt_timeout(secs(3))
//!     .retry(Retry::max_attempts(3))
//!     .breaker(Breaker::consecutive_failures(5).cooldown(secs(30)))
//!     .build()?;
//!
//! let stock = inventory.idempotent().call(|_attempt| fetch_stock("A-7")).await?;
//! # assert_eq!(stock, 3);
//! println!("{}", inventory.explain());
//! # Ok(()) }
//! # async fn fetch_stock(_: &str) -> std::io::Result<u32> { Ok(3) }
//! ```
//!
//! Where to look: [`guard`] for calls, [`fault`] for what counts as a failure, [`retry`], [`budget`],
//! [`backoff`], [`breaker`] and [`timeout`] for each policy.
#![doc = ""]
#![doc = include_str!("../docs/features.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod attribute;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod bulkhead;
mod chance;
#[cfg(not(seawall_loom))]
pub mod chaos;
#[cfg(feature = "http")]
pub mod client;
mod clock;
#[cfg(not(feature = "config"))]
mod config;
#[cfg(feature = "config")]
pub mod config;
mod error;
#[cfg(not(seawall_loom))]
pub mod event;
#[cfg(not(seawall_loom))]
pub mod failover;
#[cfg(not(seawall_loom))]
pub mod fallback;
pub mod fault;
#[cfg(not(seawall_loom))]
pub mod guard;
#[cfg(not(seawall_loom))]
#[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "blocking code has no hedges"))]
pub mod hedge;
mod name;
pub mod rate;
#[cfg(not(seawall_loom))]
pub mod registry;
#[cfg(not(seawall_loom))]
pub mod retry;
mod slots;
mod stats;
mod sync;
#[cfg(any(feature = "task", seawall_loom))]
pub mod task;
#[cfg(not(seawall_loom))]
pub mod telemetry;
#[cfg(all(test, not(seawall_loom)))]
mod testing;
#[cfg(not(seawall_loom))]
pub mod timeout;
#[cfg(feature = "tower")]
pub mod tower;
mod versions;

pub use backoff::Backoff;
pub use breaker::Breaker;
pub use budget::Budget;
pub use bulkhead::Bulkhead;
#[cfg(not(seawall_loom))]
pub use chaos::Chaos;
pub use clock::{Clock, Tick, Time, millis, secs};
#[cfg(feature = "config")]
pub use config::Config;
pub use config::{ConfigError, Percent, Place, Problem};
pub use error::{Error, Kind, Policy};
pub use fault::{Class, Classify, Fault, Ran};
#[cfg(not(seawall_loom))]
pub use guard::{Attempt, CallBuilder, Deadline, Guard, GuardBuilder, Key};
#[cfg(feature = "tokio")]
pub use guard::{Call, Operation};
#[cfg(not(seawall_loom))]
pub use hedge::Hedge;
pub use rate::RateLimit;
#[cfg(not(seawall_loom))]
pub use registry::Registry;
#[cfg(not(seawall_loom))]
pub use retry::{Retry, Safety};
#[cfg(feature = "macros")]
#[doc = include_str!("../docs/guarded.md")]
pub use seawall_macros::guarded;

/// The first guard of the README, compiled and run with the other examples.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// How a file of resilience4j is brought over, compiled with the other examples.
#[cfg(all(doctest, feature = "config"))]
#[doc = include_str!("../docs/resilience4j.md")]
struct BringingOver;
