//! Callers with the same key share one execution.
#![doc = ""]
#![doc = include_str!("../../../docs/singleflight.md")]

pub(super) mod board;
mod seat;
#[cfg(feature = "task")]
mod shared;

pub(crate) use seat::{Flight, Waiting};
#[cfg(feature = "task")]
pub use shared::Singleflight;

use std::time::Duration;

/// How long shared work may take, whoever waits for it.
pub const WORK_TIMEOUT: Duration = Duration::from_secs(3);
