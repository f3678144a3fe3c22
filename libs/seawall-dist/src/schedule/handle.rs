//! The handle to jobs: waits for ticks, claims them, runs the work.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Clock, millis, secs};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::cron::ScheduleError;
use super::job::{Job, JobContext};
use super::plan::{Plan, passed_during_run, plan};
use super::store::{JobRun, JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd};
use super::telemetry;
use crate::bounded::{bounded, stopped};
use crate::work::{CatchPanic, keep_lease, random};
use crate::{Millis, StoreError};

/// How many runs of a job are kept in its history.
pub const HISTORY: u32 = 100;

/// A process looks at the store at least this often, so that a step of the store's clock is noticed.
const LOOK_AGAIN: Duration = secs(60);

/// How often a process looks whether a run in progress has ended, at most.
const RUN_POLL: Duration = secs(1);

/// The back-off while the store is away.
const STORE_BACKOFF: Backoff = Backoff::exponential(millis(100)).cap(secs(5));

/// How long a job waits after a panic that was not its work's: it may come again at once.
const RESTART_PAUSE: Duration = secs(1);

/// The handle to scheduled jobs. Clones share it.
#[derive(Clone)]
pub struct Jobs {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn JobStore>,
    jobs: Vec<Job>,
    owner: String,
    history: u32,
    clock: Clock,
}

/// A run that this process has claimed.
struct Run {
    tick: Millis,
    fence: u64,
    missed: u64,
    claimed: seawall::Tick,
}

impl Jobs {
    /// Begins a handle on this store.
    pub fn builder(store: Arc<dyn JobStore>) -> JobsBuilder {
        JobsBuilder { store, jobs: Vec::new(), owner: None, history: HISTORY }
    }

    /// Runs the jobs, each once per tick across all processes, until `stopping` completes. Then it lets the runs in progress
    /// end, and returns.
    pub async fn run(&self, stopping: impl Future<Output = ()> + Send) {
        let stop = watch::Sender::new(false);
        let mut loops = JoinSet::new();
        for job in &self.shared.jobs {
            let (shared, job, stop) = (self.shared.clone(), job.clone(), stop.subscribe());
            loops.spawn(async move { shared.keep_running(&job, stop).await });
        }
        stopping.await;
        stop.send_replace(true);
        while loops.join_next().await.is_some() {}
    }

    /// The last runs of a job, the newest first.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn history(&self, job: &str, limit: u32) -> Result<Vec<JobRun>, StoreError> {
        bounded("reading the history of a job", self.shared.store.history(job, limit)).await
    }
}

impl Shared {
    /// Runs a job, again if something panicked that is not the job's work, such as a store.
    async fn keep_running(&self, job: &Job, stop: watch::Receiver<bool>) {
        while let Err(panic) = CatchPanic::new(self.run_job(job, stop.clone())).await {
            telemetry::panicked(&job.name, &panic);
            pause(RESTART_PAUSE, &stop).await;
        }
    }

    async fn run_job(&self, job: &Job, stop: watch::Receiver<bool>) {
        let mut failures = 0;
        while !*stop.borrow() {
            let wait = match self.step(job, &stop).await {
                Ok(wait) => {
                    failures = 0;
                    wait
                }
                Err(error) => {
                    telemetry::store_failed(&job.name, &error);
                    failures += 1;
                    STORE_BACKOFF.wait(failures, Duration::ZERO, false, random())
                }
            };
            pause(wait, &stop).await;
        }
    }

    /// Does what is due now, and returns how long to wait.
    async fn step(&self, job: &Job, stop: &watch::Receiver<bool>) -> Result<Duration, StoreError> {
        let state = tokio::select! {
            state = bounded("reading a job", self.store.open(&job.name)) => state?,
            () = stopped(stop, Duration::ZERO) => return Ok(Duration::ZERO),
        };
        let due = plan(&job.schedule, job.missed_runs, job.tolerance, state.last_tick, state.now);
        if let (Some(until), Plan::Run { .. } | Plan::Pass { .. }) = (state.running_until, due) {
            // A run is in progress: what is due is decided when it has ended.
            let poll = RUN_POLL.min(job.lease / 3);
            return Ok(until.since(state.now).clamp(millis(1), poll));
        }
        match due {
            Plan::Wait { until } => {
                let wait = until.map_or(LOOK_AGAIN, |until| until.since(state.now));
                Ok(wait.clamp(millis(1), LOOK_AGAIN))
            }
            Plan::Pass { tick, missed } => {
                let pass = MissedTicks { job: job.name.to_string(), after: state.last_tick, tick, missed };
                if bounded("passing over ticks of a job", self.store.pass(&pass)).await? {
                    telemetry::missed(&job.name, tick, missed);
                }
                Ok(Duration::ZERO)
            }
            Plan::Run { tick, missed } => {
                let claim = RunClaim {
                    job: job.name.to_string(),
                    after: state.last_tick,
                    tick,
                    missed,
                    owner: self.owner.clone(),
                    lease: job.lease,
                };
                let claimed = self.clock.precise();
                let outcome = bounded("claiming a tick of a job", self.store.claim(&claim)).await?;
                if let RunClaimOutcome::Claimed { fence } = outcome {
                    telemetry::missed(&job.name, tick, missed);
                    self.execute(job, Run { tick, fence, missed, claimed }, stop).await?;
                }
                Ok(Duration::ZERO)
            }
        }
    }

    /// Runs the work under its lease, and records how it ended.
    async fn execute(&self, job: &Job, run: Run, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let (tick, fence) = (run.tick, run.fence);
        let context = JobContext { job: job.name.clone(), tick, missed: run.missed, fence };
        let began = self.clock.precise();
        let mut keeper = pin!(keep_lease(&self.clock, job.lease, run.claimed, || {
            self.store.renew(&job.name, fence, job.lease)
        }));
        let error = tokio::select! {
            // The lease is looked at first: nothing happens under one that is over.
            biased;
            () = &mut keeper => {
                telemetry::lease_lost(&job.name, tick);
                return Ok(());
            }
            result = run_of(job, context) => result.err(),
        };
        let took = self.clock.precise().since(began);
        telemetry::ended(&job.name, tick, took, error.as_deref());
        // The end is recorded, again if the store was away, for as long as the lease lasts, which may be kept although nothing
        // can be recorded. A process that stops does not wait for that for ever.
        tokio::select! {
            biased;
            () = &mut keeper => Ok(()),
            () = stopped(stop, job.lease) => Ok(()),
            result = self.finish(job, tick, fence, error) => result,
        }
    }

    async fn finish(
        &self,
        job: &Job,
        tick: Millis,
        fence: u64,
        error: Option<String>,
    ) -> Result<(), StoreError> {
        let mut failures = 0;
        loop {
            let ended = async {
                let now = bounded("reading a job", self.store.open(&job.name)).await?.now;
                let passed = passed_during_run(&job.schedule, job.missed_runs, tick, now);
                let job = job.name.to_string();
                let end = RunEnd { job, tick, fence, error: error.clone(), passed, keep: self.history };
                let recorded = bounded("recording the end of a run", self.store.finish(&end)).await?;
                Ok::<_, StoreError>(passed.filter(|_| recorded))
            };
            match ended.await {
                Ok(passed) => {
                    if let Some((tick, missed)) = passed {
                        telemetry::missed(&job.name, tick, missed);
                    }
                    return Ok(());
                }
                Err(error) if error.fault().is_transient() => {
                    sleep(STORE_BACKOFF.wait(failures, Duration::ZERO, false, random())).await;
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits, but not when the process stops.
async fn pause(wait: Duration, stop: &watch::Receiver<bool>) {
    tokio::select! {
        () = sleep(wait) => {}
        () = stopped(stop, Duration::ZERO) => {}
    }
}

/// One run: a panic and a timeout are failures.
async fn run_of(job: &Job, context: JobContext) -> Result<(), String> {
    let work = CatchPanic::new((job.work)(context));
    let result = match job.timeout {
        None => work.await,
        Some(limit) => match timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => return Err(format!("cancelled: it did not end within {limit:?}")),
        },
    };
    result.unwrap_or_else(|panic| Err(format!("panicked: {panic}")))
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").field("owner", &self.shared.owner).field("jobs", &self.shared.jobs).finish()
    }
}

/// Chooses the jobs of a process.
#[must_use = "a handle is made by `build`"]
pub struct JobsBuilder {
    store: Arc<dyn JobStore>,
    jobs: Vec<Job>,
    owner: Option<String>,
    history: u32,
}

impl std::fmt::Debug for JobsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobsBuilder").field("jobs", &self.jobs).finish_non_exhaustive()
    }
}

impl JobsBuilder {
    /// Adds a job.
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// Sets the name of this process in the history; its id and a random number unless told.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets how many runs of each job are kept; [`HISTORY`] unless told.
    pub fn history(mut self, runs: u32) -> Self {
        self.history = runs;
        self
    }

    /// Makes the handle.
    ///
    /// # Errors
    /// Fails with every mistake: a name twice or empty, a lease below 10 ms, a timeout of zero, a bound of zero, no history.
    pub fn build(self) -> Result<Jobs, ScheduleError> {
        let (mut problems, mut names) = (Vec::new(), HashSet::new());
        for job in &self.jobs {
            let name = &job.name;
            let all = matches!(job.missed_runs, super::MissedRuns::RunAll { max: 0 });
            for (wrong, problem) in [
                (name.is_empty(), "has no name"),
                (!names.insert(name.clone()), "is there twice"),
                (job.lease < millis(10), "has a lease below 10 ms: no store could renew it"),
                (job.timeout.is_some_and(|timeout| timeout.is_zero()), "has a timeout of zero"),
                (all, "runs all missed ticks up to a maximum of zero: write `MissedRuns::Skip`"),
            ] {
                if wrong {
                    problems.push(format!("job `{name}` {problem}"));
                }
            }
        }
        if self.history == 0 {
            problems
                .push("a history of no runs would forget the run in progress: write at least 1".to_owned());
        }
        if !problems.is_empty() {
            return Err(ScheduleError { reason: problems.join("; ") });
        }
        let owner = self.owner.unwrap_or_else(|| format!("{}-{:08x}", std::process::id(), random() as u32));
        let (store, jobs, history) = (self.store, self.jobs, self.history);
        Ok(Jobs { shared: Arc::new(Shared { store, jobs, owner, history, clock: Clock::default() }) })
    }
}
