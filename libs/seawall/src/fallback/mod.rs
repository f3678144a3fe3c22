//! Something to answer with when there is no good answer.
#![doc = ""]
#![doc = include_str!("../../docs/fallback.md")]

mod answer;
mod config;
mod last_good;
#[cfg(feature = "macros")]
mod lent;
mod policy;

pub use answer::Answer;
pub use config::FallbackFilter;
pub(crate) use config::is_given_up;
pub use last_good::{GoodAnswers, LastGood, LastGoodEntry, LastGoodMap};
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use lent::{LentError, LentOperation};
pub use policy::{
    BlockingFallback, Fallback, Function, LastGoodValue, NoFallback, OtherOperation, OtherValue, Then,
    Tracked, Value,
};
