//! Callers with the same key share one execution of their work.
#![doc = ""]
#![doc = include_str!("../../../docs/singleflight.md")]

mod flight;
pub(super) mod registry;
#[cfg(feature = "task")]
mod shared;

pub(crate) use flight::{Flight, Waiting};
#[cfg(feature = "task")]
pub use shared::Singleflight;

use std::time::Duration;

/// The default time limit of shared work.
pub const WORK_TIMEOUT: Duration = Duration::from_secs(3);
