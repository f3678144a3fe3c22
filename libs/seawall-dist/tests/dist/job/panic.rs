//! Panics outside of a run's future.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::schedule::{
    Job, JobContext, JobRun, JobState, JobStore, Jobs, MemoryJobStore, MissedTicks, RunClaim,
    RunClaimOutcome, RunEnd, RunState, Schedule,
};

use super::{Ran, TICK, job, jobs, run_for};

/// CRD-6: a closure that panics before it has made its future fails that run, and the job goes on.
#[tokio::test(start_paused = true)]
async fn crd_6_a_closure_that_panics_fails_one_run() {
    let store = Arc::new(MemoryJobStore::new());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let panics = Job::new("report", Schedule::every(TICK).unwrap(), move |_: JobContext| {
        assert!(counted.fetch_add(1, Ordering::Relaxed) % 2 == 1, "no paper");
        async { Ok::<_, std::io::Error>(()) }
    });
    let handle = jobs(&store, panics).build().unwrap();
    run_for(vec![handle.clone()], TICK * 4 + TICK / 2).await;
    assert!(calls.load(Ordering::Relaxed) >= 4, "the job stopped after a panic");
    let mut history = handle.history("report", 10).await.unwrap();
    history.reverse();
    let ends: Vec<_> = history.iter().take(4).map(|run| (run.state, run.error.as_deref())).collect();
    let (panicked, fine) =
        ((RunState::Failed, Some("panicked: no paper")), (RunState::Succeeded, None::<&str>));
    assert_eq!(ends, [panicked, fine, panicked, fine]);
}

/// CRD-6: a store that panics does not stop its job for good.
#[tokio::test(start_paused = true)]
async fn crd_6_a_job_survives_a_panic_of_its_store() {
    let ran = Ran::default();
    let store = Arc::new(PanickingStore { inner: MemoryJobStore::new(), calls: AtomicU32::new(0) });
    let handle = Jobs::builder(store).job(job(&ran, Duration::ZERO)).build().unwrap();
    run_for(vec![handle], TICK * 60).await;
    assert!(ran.ticks().len() > 5, "the job ran {} times", ran.ticks().len());
}

/// A store that panics in every third look at a job.
struct PanickingStore {
    inner: MemoryJobStore,
    calls: AtomicU32,
}

impl JobStore for PanickingStore {
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
        assert!(self.calls.fetch_add(1, Ordering::Relaxed) % 3 != 2, "no disk");
        self.inner.open(job)
    }

    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
        self.inner.claim(claim)
    }

    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
        self.inner.pass(missed)
    }

    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        self.inner.renew(job, fence, lease)
    }

    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
        self.inner.finish(end)
    }

    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
        self.inner.history(job, limit)
    }
}
