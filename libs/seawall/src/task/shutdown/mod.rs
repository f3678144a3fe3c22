//! Graceful shutdown of a process: in order and in time.
#![doc = ""]
#![doc = include_str!("../../../docs/shutdown.md")]

mod log;
mod part;
mod phase;
mod policy;
mod report;
#[cfg(feature = "signal")]
mod signals;

pub use part::{CloseResult, Readiness, ShutdownToken, TrackedWork, WorkTracker};
pub use phase::{DELAY, Phase};
pub use policy::Shutdown;
pub use report::{EXIT_CLEAN, EXIT_FORCED, EXIT_UNFINISHED, PartOutcome, PartReport, ShutdownReport};
#[cfg(feature = "signal")]
pub use signals::{Signal, Signals};
