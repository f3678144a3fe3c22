//! Further attempts beside the one that takes too long.
#![doc = ""]
#![doc = include_str!("../../docs/hedge.md")]

mod config;
mod machine;
mod policy;
#[cfg(feature = "tokio")]
mod progress;

pub use config::{Hedge, MAX_HEDGES, SAMPLES_MIN, UNTIL_KNOWN};
pub use policy::Hedger;
#[cfg(feature = "tokio")]
pub(crate) use progress::HedgedProgress;

#[cfg(test)]
mod tests;
