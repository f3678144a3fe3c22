//! No more calls than agreed.
#![doc = ""]
#![doc = include_str!("../../docs/rate.md")]

#[cfg(feature = "tokio")]
mod acquire;
mod config;
mod machine;
mod policy;

pub use config::RateLimit;
pub use policy::{Limited, RateLimiter, Reservation};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
