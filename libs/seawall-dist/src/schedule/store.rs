//! Where jobs are kept.

use std::time::Duration;

use crate::{Millis, StoreFuture};

/// Where a job stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobState {
    /// Every tick up to this one is handled: claimed, or passed over.
    pub last_tick: Millis,
    /// When the lease of the run in progress ends, if there is one.
    pub running_until: Option<Millis>,
    /// The store's clock. All processes decide by it, so that their own clocks need not agree.
    pub now: Millis,
}

/// A process wants to run a tick.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunClaim {
    /// The job.
    pub job: String,
    /// The last handled tick that the process has read.
    pub after: Millis,
    /// The tick to run.
    pub tick: Millis,
    /// How many ticks before it were missed.
    pub missed: u64,
    /// The process.
    pub owner: String,
    /// How long the run may go on without being renewed.
    pub lease: Duration,
}

/// What came of a [`RunClaim`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunClaimOutcome {
    /// The tick is claimed, by this process and no other.
    Claimed {
        /// The fencing token of the run: grows with every run of the job.
        fence: u64,
    },
    /// Another process has handled the tick.
    Taken,
    /// A run is in progress.
    Running,
}

/// Ticks that are passed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissedTicks {
    /// The job.
    pub job: String,
    /// The last handled tick that the process has read.
    pub after: Millis,
    /// The newest of the missed ticks.
    pub tick: Millis,
    /// How many there are.
    pub missed: u64,
}

/// A run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEnd {
    /// The job.
    pub job: String,
    /// The tick.
    pub tick: Millis,
    /// The fencing token of the run.
    pub fence: u64,
    /// The error, if the run failed.
    pub error: Option<String>,
    /// Ticks that came during the run and are passed over: the newest one, and how many.
    pub passed: Option<(Millis, u64)>,
    /// How many runs are kept in the history.
    pub keep: u32,
}

/// How a run stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RunState {
    /// It is in progress.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// Its process ended in the middle, or lost the lease.
    Abandoned,
    /// It did not take place.
    Missed,
}

impl RunState {
    /// Every state.
    pub const ALL: [RunState; 5] =
        [RunState::Running, RunState::Succeeded, RunState::Failed, RunState::Abandoned, RunState::Missed];

    /// The name that is stored: `succeeded`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::Abandoned => "abandoned",
            RunState::Missed => "missed",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<RunState> {
        RunState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// One run in the history of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRun {
    /// The tick.
    pub tick: Millis,
    /// How it stands.
    pub state: RunState,
    /// The process that ran it; empty for missed ticks.
    pub owner: String,
    /// How many ticks were missed before it, or with it if it was missed itself.
    pub missed: u64,
    /// When it began, by the store's clock.
    pub started_at: Millis,
    /// When it ended, by the store's clock.
    pub ended_at: Option<Millis>,
    /// The error of a run that failed.
    pub error: Option<String>,
}

/// The store of jobs. Every method is one atomic change; times come from the store's clock.
pub trait JobStore: Send + Sync + 'static {
    /// Reads where a job stands. A job that the store does not know begins now: earlier ticks are not run.
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState>;

    /// Claims a tick, if the last handled tick is still the one that was read and no run is in progress. A run whose lease is
    /// over is not in progress: it is recorded as abandoned.
    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome>;

    /// Passes over ticks, if the last handled tick is still the one that was read and no run is in progress.
    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool>;

    /// Makes the lease of a run last from now on. False if the fence is not the job's any more.
    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool>;

    /// Records the end of a run and lets the next one begin. False if the fence is not the job's any more: then nothing is
    /// recorded.
    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool>;

    /// The last runs of a job, the newest first.
    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>>;
}
