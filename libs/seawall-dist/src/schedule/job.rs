//! One job: its name, its schedule, its work.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::secs;

use super::plan::{MissedRuns, Schedule};
use crate::Millis;

/// How long a run may go on without its lease being renewed: a dead process blocks the job for so long.
pub const LEASE: Duration = secs(15);

/// How late a run may begin and still count as on time, where missed ticks are skipped.
pub const TOLERANCE: Duration = secs(60);

pub(super) type Work = Arc<dyn Fn(JobContext) -> WorkFuture + Send + Sync>;
type WorkFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What a run gets to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobContext {
    /// The name of the job.
    pub job: Arc<str>,
    /// The tick: the time at which the run was due, which is the same in every process.
    pub tick: Millis,
    /// How many ticks before this one were missed and are not run.
    pub missed: u64,
    /// The fencing token: grows with every run of the job. Let a store refuse writes with an older one.
    pub fence: u64,
}

/// A job that runs once per tick across all processes.
#[derive(Clone)]
pub struct Job {
    pub(super) name: Arc<str>,
    pub(super) schedule: Schedule,
    pub(super) work: Work,
    pub(super) missed_runs: MissedRuns,
    pub(super) tolerance: Duration,
    pub(super) lease: Duration,
    pub(super) timeout: Option<Duration>,
}

impl Job {
    /// Creates a job. Processes that use the same name share its ticks, and must have the same schedule.
    #[must_use]
    pub fn new<F, Fut, E>(name: &str, schedule: Schedule, work: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let work = Arc::new(work);
        // The closure is called inside of the future, so that its own panic is caught with those of the future.
        let work: Work = Arc::new(move |context| {
            let work = work.clone();
            Box::pin(async move { work(context).await.map_err(|error| text_of(&*error.into())) })
        });
        Job {
            name: name.into(),
            schedule,
            work,
            missed_runs: MissedRuns::default(),
            tolerance: TOLERANCE,
            lease: LEASE,
            timeout: None,
        }
    }

    /// Sets what becomes of missed ticks; they are skipped unless told.
    #[must_use]
    pub fn missed_runs(mut self, policy: MissedRuns) -> Self {
        self.missed_runs = policy;
        self
    }

    /// Sets how late a run may begin where missed ticks are skipped; [`TOLERANCE`] unless told.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets how long a dead process blocks the job; [`LEASE`] unless told. A live one renews the lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long a run may take. It is cancelled and recorded as failed after that; without a limit unless told.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .field("schedule", &self.schedule)
            .field("missed_runs", &self.missed_runs)
            .finish_non_exhaustive()
    }
}

fn text_of(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause.filter(|cause| !cause.is::<seawall::Fault>()) {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
