//! A transient fault that the caller never sees.
#![doc = ""]
#![doc = include_str!("../../docs/retry.md")]

mod config;
mod machine;

pub(crate) use config::Settings;
pub use config::{ATTEMPTS, FailedAttempt, RETRY_AFTER_CAP, Retry, Safety};
pub(crate) use machine::{GiveUp, Situation, decide, wait};

#[cfg(test)]
mod tests;
