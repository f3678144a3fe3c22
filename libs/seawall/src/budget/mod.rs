//! The retry budget: what keeps retries from making an outage worse.
//!
//! # Why a budget and not only a maximum of attempts?
//! Three attempts each are harmless while one call in a hundred fails. When the backend is in trouble every call
//! fails, every caller retries, and the backend gets three times the load at the worst moment. A budget bounds
//! the *ratio*: retries may be a tenth of the calls, whatever the backend does, plus a small floor so that a
//! service with little traffic can retry at all.
//!
//! Only first attempts earn. If a successful retry earned too, a minority that always fails could pay for its
//! own retries for ever.

mod config;
mod machine;
mod policy;

pub use config::{Budget, FLOOR_PER_SECOND, SHARE, WINDOW};
pub use policy::{RetryBudget, Token};

#[cfg(all(test, not(seawall_loom)))]
mod tests;
