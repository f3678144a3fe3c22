//! Jobs that run once across all processes.
#![doc = ""]
#![doc = include_str!("../../docs/schedule.md")]

mod cron;
mod handle;
mod job;
mod memory;
mod plan;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;

pub use cron::ScheduleError;
pub use handle::{HISTORY, Jobs, JobsBuilder};
pub use job::{Job, JobContext, LEASE, TOLERANCE};
pub use memory::MemoryJobStore;
pub use plan::{INTERVAL_MIN, MissedRuns, Schedule};
pub use store::{JobRun, JobState, JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd, RunState};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;
