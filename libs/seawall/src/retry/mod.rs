//! Retry: a transient fault that the caller never sees.
//!
//! Whether a failed attempt is tried again is decided in one place, [`machine`](self), in this order: can trying
//! again help at all? Is it safe? Are there attempts left? Is there time? Does the [budget](crate::budget) allow
//! it? The first "no" ends the call, and the error says which one it was.

mod config;
mod machine;

pub(crate) use config::Settings;
pub use config::{ATTEMPTS, RETRY_AFTER_CAP, Retry};
pub(crate) use machine::{GiveUp, Situation, decide, wait};

#[cfg(all(test, not(seawall_loom)))]
mod tests;

/// Whether it is safe to run the operation again after it may have run already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Safety {
    /// Running it twice is not the same as running it once. Retried only when it certainly did not run.
    #[default]
    Once,
    /// Running it twice is the same as running it once.
    Idempotent,
    /// The peer remembers the key of the call and does not run it twice.
    Keyed,
}
