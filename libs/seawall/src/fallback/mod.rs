//! Something to answer with when there is no answer.
#![doc = ""]
#![doc = include_str!("../../docs/fallback.md")]

mod answer;
mod config;
mod policy;

pub use answer::Answer;
pub use config::When;
pub use policy::{AtHand, Elsewhere, Fallback, LastGood, NoSink, OrLastGood, Sink, WithFallback};
