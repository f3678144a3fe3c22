//! One slow dependency must not take everything down with it.
#![doc = ""]
#![doc = include_str!("../../docs/bulkhead.md")]

#[cfg(feature = "tokio")]
mod acquire;
mod config;
mod limit;
mod line;
mod machine;
mod parked;
mod policy;

pub use config::{Adapt, Bulkhead, MAX_CALLS, MAX_WAITING};
pub use line::Waiter;
pub use policy::{Entry, Full, Gate, OwnedPermit, Permit};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
