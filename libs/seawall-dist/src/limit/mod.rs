//! A rate limit that several processes share.
#![doc = ""]
#![doc = include_str!("../../docs/limit.md")]

mod error;
mod machine;
mod options;
mod shared;
mod store;
mod telemetry;

pub use error::{Admission, DecidedBy, LimitError};
pub use machine::{BucketRules, Decision, decide, give_back};
pub use options::{
    PERIOD, STORE_PAUSE, STORE_TIMEOUT, STORE_TIMEOUT_MAX, SharedLimitBuilder, WAIT_MAX, WhenAway,
};
pub use shared::SharedLimit;
pub use store::{LimitAnswer, LimitStore, MemoryLimits};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;

#[cfg(test)]
mod tests;
