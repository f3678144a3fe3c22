//! Timeouts: nobody waits for ever.
//!
//! Two layers, and both are needed. The **attempt timeout** bounds one try, so that a hung connection is noticed
//! while there is time for another. The **call timeout** bounds everything together, attempts and the waits
//! between them, because that is what the caller of the caller waits for.
//!
//! A deadline passes down: a guard inside a guarded operation never outlives the one around it.

mod config;
mod machine;

pub use config::{ATTEMPT_TIMEOUT, CALL_TIMEOUT};
pub(crate) use config::{CallTimeout, Timeouts};
pub(crate) use machine::{Expired, expired};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
