//! A second attempt for the one that takes too long.
#![doc = ""]
#![doc = include_str!("../../docs/hedge.md")]

mod config;
mod machine;
mod policy;

pub use config::{Hedge, SAMPLES_MIN};
pub use policy::{Hedged, Hedger};

#[cfg(test)]
mod tests;
