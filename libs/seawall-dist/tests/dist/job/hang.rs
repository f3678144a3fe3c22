//! Jobs on a store that does not answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::schedule::{
    JobRun, JobState, JobStore, Jobs, MemoryJobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd,
};
use tokio::time::{sleep, timeout};

use super::{Ran, TICK, job};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Open,
    Claim,
    Pass,
    Renew,
    Finish,
    History,
}

/// A store in memory of which some calls hang.
#[derive(Default)]
struct HangingStore {
    inner: MemoryJobStore,
    hanging: Mutex<Vec<Call>>,
}

impl HangingStore {
    fn hang(&self, calls: &[Call]) {
        *self.hanging.lock().unwrap_or_else(PoisonError::into_inner) = calls.to_vec();
    }

    async fn call<T>(&self, call: Call, operation: impl Future<Output = T>) -> T {
        if self.hanging.lock().unwrap_or_else(PoisonError::into_inner).contains(&call) {
            std::future::pending::<()>().await;
        }
        operation.await
    }
}

impl JobStore for HangingStore {
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
        Box::pin(self.call(Call::Open, self.inner.open(job)))
    }

    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
        Box::pin(self.call(Call::Claim, self.inner.claim(claim)))
    }

    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
        Box::pin(self.call(Call::Pass, self.inner.pass(missed)))
    }

    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(self.call(Call::Renew, self.inner.renew(job, fence, lease)))
    }

    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
        Box::pin(self.call(Call::Finish, self.inner.finish(end)))
    }

    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
        Box::pin(self.call(Call::History, self.inner.history(job, limit)))
    }
}

/// CRD-6: an orderly stop ends although the store hangs, and a job goes on when the store answers again.
#[tokio::test(start_paused = true)]
async fn crd_6_a_store_that_hangs_hangs_neither_the_job_nor_its_stop() {
    const HANGS: [&[Call]; 5] =
        [&[Call::Open], &[Call::Claim], &[Call::Pass], &[Call::Finish], &[Call::Finish, Call::Renew]];
    for (hanging, recovers) in HANGS.iter().flat_map(|hanging| [(hanging, false), (hanging, true)]) {
        let (store, ran) = (Arc::new(HangingStore::default()), Ran::default());
        // Late ticks are passed over, so that every call is made.
        let job = job(&ran, TICK / 10).tolerance(TICK / 100);
        let handle = Jobs::builder(store.clone()).job(job).build().unwrap();
        let script = async {
            sleep(TICK * 3).await;
            store.hang(hanging);
            sleep(TICK * 30).await;
            if recovers {
                store.hang(&[]);
                let before = ran.ticks().len();
                sleep(TICK * 30).await;
                assert!(ran.ticks().len() > before + 10, "the job did not go on after {hanging:?} hung");
            }
        };
        let run = timeout(TICK * 90, handle.run(script));
        assert!(run.await.is_ok(), "the stop hangs while {hanging:?} do");
    }
}

/// CRD-6: who asks for the history of a store that hangs gets an error.
#[tokio::test(start_paused = true)]
async fn crd_6_the_history_of_a_store_that_hangs_is_an_error() {
    let (store, ran) = (Arc::new(HangingStore::default()), Ran::default());
    let handle = Jobs::builder(store.clone()).job(job(&ran, TICK)).build().unwrap();
    store.hang(&[Call::History]);
    let history = timeout(TICK * 90, handle.history("report", 1)).await.expect("the call hangs");
    assert_eq!(history.unwrap_err().to_string(), "reading the history of a job failed: no answer within 5s");
}
