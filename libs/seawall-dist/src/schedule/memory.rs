//! Jobs in memory: for tests, and for programs of one process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::store::{JobRun, JobState, JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd, RunState};
use crate::work::MemoryClock;
use crate::{Millis, StoreFuture};

/// A store of jobs that ends with its process.
#[derive(Debug, Default)]
pub struct MemoryJobStore {
    clock: MemoryClock,
    jobs: Mutex<HashMap<String, Row>>,
}

#[derive(Debug, Default)]
struct Row {
    last_tick: Millis,
    fence: u64,
    /// The tick of the run in progress, and when its lease ends.
    running: Option<(Millis, Millis)>,
    runs: BTreeMap<Millis, JobRun>,
}

impl MemoryJobStore {
    /// Creates a store without jobs.
    #[must_use]
    pub fn new() -> Self {
        MemoryJobStore::default()
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Row>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn is_running(&self, now: Millis) -> bool {
        self.running.is_some_and(|(_, until)| until > now)
    }

    fn miss(&mut self, tick: Millis, missed: u64, now: Millis) {
        let (state, owner) = (RunState::Missed, String::new());
        let run = JobRun { tick, state, owner, missed, started_at: now, ended_at: Some(now), error: None };
        self.runs.insert(tick, run);
        self.last_tick = tick;
    }
}

impl JobStore for MemoryJobStore {
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
        Box::pin(async move {
            let (now, mut jobs) = (self.clock.now(), self.jobs());
            let row = jobs.entry(job.to_owned()).or_insert_with(|| Row { last_tick: now, ..Row::default() });
            let running_until = row.running.map(|(_, until)| until).filter(|until| *until > now);
            Ok(JobState { last_tick: row.last_tick, running_until, now })
        })
    }

    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
        Box::pin(async move {
            let (now, mut jobs) = (self.clock.now(), self.jobs());
            let Some(row) = jobs.get_mut(&claim.job).filter(|row| row.last_tick == claim.after) else {
                return Ok(RunClaimOutcome::Taken);
            };
            if row.is_running(now) {
                return Ok(RunClaimOutcome::Running);
            }
            for run in row.runs.values_mut().filter(|run| run.state == RunState::Running) {
                (run.state, run.ended_at) = (RunState::Abandoned, Some(now));
            }
            row.fence += 1;
            row.last_tick = claim.tick;
            row.running = Some((claim.tick, now + claim.lease));
            let (tick, missed, owner) = (claim.tick, claim.missed, claim.owner.clone());
            let state = RunState::Running;
            row.runs.insert(
                tick,
                JobRun { tick, state, owner, missed, started_at: now, ended_at: None, error: None },
            );
            Ok(RunClaimOutcome::Claimed { fence: row.fence })
        })
    }

    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (now, mut jobs) = (self.clock.now(), self.jobs());
            let row = jobs.get_mut(&missed.job);
            let row = row.filter(|row| row.last_tick == missed.after && !row.is_running(now));
            Ok(row.map(|row| row.miss(missed.tick, missed.missed, now)).is_some())
        })
    }

    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (now, mut jobs) = (self.clock.now(), self.jobs());
            let row = jobs.get_mut(job).filter(|row| row.fence == fence);
            let running = row.and_then(|row| row.running.as_mut());
            Ok(running.map(|(_, until)| *until = now + lease).is_some())
        })
    }

    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (now, mut jobs) = (self.clock.now(), self.jobs());
            let row = jobs.get_mut(&end.job).filter(|row| row.fence == end.fence && row.running.is_some());
            let Some(row) = row else { return Ok(false) };
            row.running = None;
            if let Some(run) = row.runs.get_mut(&end.tick) {
                run.state = if end.error.is_some() { RunState::Failed } else { RunState::Succeeded };
                run.ended_at = Some(now);
                run.error.clone_from(&end.error);
            }
            if let Some((tick, missed)) = end.passed {
                row.miss(tick, missed, now);
            }
            while row.runs.len() > end.keep as usize {
                row.runs.pop_first();
            }
            Ok(true)
        })
    }

    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
        Box::pin(async move {
            let jobs = self.jobs();
            let runs = jobs.get(job).into_iter().flat_map(|row| row.runs.values().rev());
            Ok(runs.take(limit as usize).cloned().collect())
        })
    }
}
