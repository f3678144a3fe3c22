//! Scheduled jobs on the store in memory.

mod hang;
mod panic;
mod telemetry;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall::millis;
use seawall_dist::schedule::{
    Job, JobContext, JobRun, JobState, JobStore, Jobs, JobsBuilder, MemoryJobStore, MissedRuns, MissedTicks,
    RunClaim, RunClaimOutcome, RunEnd, RunState, Schedule,
};
use seawall_dist::{Millis, StoreFuture};
use seawall_testkit::{conformance, poll_once};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// CRD-6: the store in memory keeps the contract of every store of jobs.
#[tokio::test]
async fn crd_6_memory_is_a_job_store() {
    conformance::job(Arc::new(MemoryJobStore::new())).await;
}

const TICK: Duration = Duration::from_secs(1);

/// The ticks at which a job ran.
#[derive(Clone, Default)]
struct Ran(Arc<Mutex<Vec<Millis>>>);

impl Ran {
    fn ticks(&self) -> Vec<Millis> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A job that takes `lasts` and records its ticks.
fn job(ran: &Ran, lasts: Duration) -> Job {
    let ran = ran.clone();
    Job::new("report", Schedule::every(TICK).unwrap(), move |context: JobContext| {
        let ran = ran.clone();
        async move {
            ran.0.lock().unwrap_or_else(PoisonError::into_inner).push(context.tick);
            tokio::time::sleep(lasts).await;
            Ok::<_, std::io::Error>(())
        }
    })
    .lease(TICK * 3)
}

fn jobs(store: &Arc<MemoryJobStore>, job: Job) -> JobsBuilder {
    let store: Arc<dyn JobStore> = store.clone();
    Jobs::builder(store).job(job)
}

/// Runs as many processes as there are handles for so long.
async fn run_for(handles: Vec<Jobs>, time: Duration) {
    let stop = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    for handle in handles {
        let stop = stop.clone();
        tasks.spawn(async move { handle.run(stop.notified()).await });
    }
    tokio::time::sleep(time).await;
    stop.notify_waiters();
    tasks.join_all().await;
}

/// Waits until a third of a tick has passed: a test that counts ticks must not begin or end beside one.
async fn between_ticks(store: &MemoryJobStore) {
    let now = store.open("the time").await.unwrap().now;
    let (tick, past) = (TICK.as_millis() as i64, now.0 % TICK.as_millis() as i64);
    tokio::time::sleep(millis((tick + tick / 3 - past) as u64)).await;
}

/// CRD-6: three processes run a job once per tick.
#[tokio::test(start_paused = true)]
async fn crd_6_a_job_runs_once_per_tick() {
    let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
    let handles = (0..3).map(|_| jobs(&store, job(&ran, millis(100))).build().unwrap()).collect();
    run_for(handles, TICK * 50 + TICK / 2).await;
    let ticks = ran.ticks();
    assert!((49..=51).contains(&ticks.len()), "{} runs in 50 ticks", ticks.len());
    assert!(ticks.windows(2).all(|pair| pair[1].since(pair[0]) == TICK), "a tick was run twice, or left out");
    let history = jobs(&store, job(&ran, TICK)).build().unwrap().history("report", 100).await.unwrap();
    assert!(history.iter().all(|run| run.state == RunState::Succeeded), "{history:?}");
}

/// CRD-6: a run that lasts longer than the interval is not joined by a second one; its ticks are missed.
#[tokio::test(start_paused = true)]
async fn crd_6_a_long_run_is_alone() {
    for (policy, expected) in [
        (MissedRuns::Skip, vec![4, 4, 4]),
        (MissedRuns::RunOnce, vec![3, 4, 3]),
        (MissedRuns::RunAll { max: 100 }, vec![1, 1, 1]),
    ] {
        let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
        let long = || job(&ran, TICK * 7 / 2).missed_runs(policy);
        let handles = (0..3).map(|_| jobs(&store, long()).build().unwrap()).collect();
        run_for(handles, TICK * 16).await;
        let ticks = ran.ticks();
        let gaps: Vec<u64> = ticks.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
        let sound = |gap: &u64| expected.contains(gap);
        assert!(gaps.len() >= 3 && gaps.iter().all(sound), "{policy:?}: {gaps:?}");
        let handle = jobs(&store, long()).build().unwrap();
        let history = handle.history("report", 100).await.unwrap();
        assert!(
            history.iter().all(|run| run.state != RunState::Abandoned),
            "a lease was not renewed: {history:?}"
        );
    }
}

/// CRD-6: ticks that passed while no process was there are treated as the policy says.
#[tokio::test(start_paused = true)]
async fn crd_6_ticks_without_a_process_are_missed() {
    for (policy, expected) in [
        (MissedRuns::Skip, 0),
        (MissedRuns::RunOnce, 1),
        (MissedRuns::RunAll { max: 3 }, 3),
        (MissedRuns::RunAll { max: 100 }, 10),
    ] {
        let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
        let build = || {
            jobs(&store, job(&ran, Duration::ZERO).missed_runs(policy).tolerance(millis(1))).build().unwrap()
        };
        between_ticks(&store).await;
        run_for(vec![build()], TICK * 2 + TICK / 2).await;
        let before = ran.ticks();
        tokio::time::sleep(TICK * 10).await;
        run_for(vec![build()], millis(10)).await;
        let after = ran.ticks().split_off(before.len());
        assert_eq!(after.len(), expected, "{policy:?}");
        let history = build().history("report", 100).await.unwrap();
        let missed: u64 = history.iter().map(|run| run.missed).sum();
        assert_eq!(missed as usize + expected, 10, "{policy:?}: missed ticks are not recorded");
    }
}

/// CRD-6: failures, panics and timeouts are recorded, and the job goes on.
#[tokio::test(start_paused = true)]
async fn crd_6_failures_are_recorded() {
    let store = Arc::new(MemoryJobStore::new());
    let number = Arc::new(Mutex::new(0));
    let failing = Job::new("report", Schedule::every(TICK).unwrap(), move |_| {
        let mut number = number.lock().unwrap_or_else(PoisonError::into_inner);
        *number += 1;
        let turn = *number % 4;
        async move {
            match turn {
                1 => Err(std::io::Error::other("no disk")),
                2 => panic!("no paper"),
                3 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    })
    .timeout(TICK / 2);
    let handle = jobs(&store, failing).build().unwrap();
    run_for(vec![handle.clone()], TICK * 4 + TICK / 2).await;
    // Four ticks or five, depending on when in a second the test began.
    let mut history = handle.history("report", 10).await.unwrap();
    history.reverse();
    let errors: Vec<_> = history.iter().take(4).map(|run| run.error.as_deref()).collect();
    let slow = "cancelled: it did not end within 500ms";
    assert_eq!(errors, [Some("no disk"), Some("panicked: no paper"), Some(slow), None]);
    assert_eq!(history[0].state, RunState::Failed);
}

/// CRD-6: an orderly stop lets the run in progress end.
#[tokio::test(start_paused = true)]
async fn crd_6_a_stop_lets_the_run_end() {
    let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
    let handle = jobs(&store, job(&ran, TICK * 5)).build().unwrap();
    run_for(vec![handle.clone()], TICK * 2).await;
    let history = handle.history("report", 10).await.unwrap();
    assert!(history.iter().any(|run| run.state == RunState::Succeeded));
    assert!(history.iter().all(|run| run.state != RunState::Running), "{history:?}");
}

/// PRM-4: a process whose future is dropped at any poll leaves nothing behind that outlasts the lease.
#[tokio::test(start_paused = true)]
async fn prm_4_jobs_may_be_dropped_at_every_poll() {
    for polls in 0..40 {
        let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
        let handle = jobs(&store, job(&ran, millis(200))).build().unwrap();
        let mut future = Box::pin(handle.run(std::future::pending()));
        for _ in 0..polls {
            assert!(poll_once(future.as_mut()).is_pending());
            tokio::time::sleep(millis(100)).await;
        }
        drop(future);
        tokio::time::sleep(TICK * 4).await;
        let before = ran.ticks().len();
        run_for(vec![jobs(&store, job(&ran, millis(1))).build().unwrap()], TICK * 2).await;
        assert!(ran.ticks().len() > before, "the job is blocked after {polls} polls");
    }
}

/// CRD-6: handles that can't work are refused with every mistake.
#[test]
fn crd_6_wrong_jobs_are_refused() {
    let (store, ran) = (Arc::new(MemoryJobStore::new()), Ran::default());
    let wrong = job(&ran, TICK)
        .lease(Duration::ZERO)
        .timeout(Duration::ZERO)
        .missed_runs(MissedRuns::RunAll { max: 0 });
    let error = jobs(&store, job(&ran, TICK)).job(wrong).history(0).build().unwrap_err().to_string();
    assert_eq!(error.split("; ").count(), 5, "{error}");
}

/// A store whose claims do not compare what was read: two processes run one tick.
struct BrokenStore(MemoryJobStore);

impl JobStore for BrokenStore {
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
        self.0.open(job)
    }

    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
        Box::pin(async move {
            let after = self.0.open(&claim.job).await?.last_tick;
            match self.0.claim(&RunClaim { after, ..claim.clone() }).await? {
                RunClaimOutcome::Running => Ok(RunClaimOutcome::Claimed { fence: 1 }),
                other => Ok(other),
            }
        })
    }

    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
        self.0.pass(missed)
    }

    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        self.0.renew(job, fence, lease)
    }

    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
        self.0.finish(end)
    }

    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
        self.0.history(job, limit)
    }
}

#[tokio::test]
#[should_panic(expected = "a claim is not exclusive")]
async fn crd_6_the_suite_finds_a_store_whose_claims_are_not_exclusive() {
    conformance::job(Arc::new(BrokenStore(MemoryJobStore::new()))).await;
}
