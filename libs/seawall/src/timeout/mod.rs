//! Nobody waits for ever.
#![doc = ""]
#![doc = include_str!("../../docs/timeouts.md")]

mod config;
mod machine;

pub use config::{ATTEMPT_TIMEOUT, CALL_TIMEOUT, DERIVED_SLACK};
pub(crate) use config::{CallTimeout, Timeouts};
pub(crate) use machine::{Expired, expired};

#[cfg(test)]
mod tests;
