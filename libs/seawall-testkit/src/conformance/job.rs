//! What every store of jobs has to hold.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::Millis;
use seawall_dist::schedule::{JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd, RunState};

/// Long enough that it never ends within the suite.
const LONG: Duration = Duration::from_secs(600);

/// Checks a store of jobs that is empty and that nobody else uses.
///
/// # Panics
/// Panics with a sentence when the store breaks its contract.
pub async fn job(store: Arc<dyn JobStore>) {
    a_new_job_begins_now(&*store).await;
    a_tick_is_claimed_once(&store).await;
    a_run_in_progress_keeps_others_out(&*store).await;
    a_dead_run_is_recorded_as_abandoned(&*store).await;
    a_lost_run_records_nothing(&*store).await;
    leases_are_renewed(&*store).await;
    ticks_are_passed_over(&*store).await;
    the_history_is_kept_and_bounded(&*store).await;
    jobs_are_apart(&*store).await;
    any_text_of_an_error_is_recorded(&*store).await;
}

async fn last_tick(store: &dyn JobStore, job: &str) -> Millis {
    store.open(job).await.expect("the store answers").last_tick
}

fn claim_of(job: &str, after: Millis, tick: Millis, lease: Duration) -> RunClaim {
    RunClaim { job: job.to_owned(), after, tick, missed: 0, owner: "first".to_owned(), lease }
}

async fn claim_next(store: &dyn JobStore, job: &str, lease: Duration) -> (Millis, u64) {
    let last = last_tick(store, job).await;
    let tick = Millis(last.0 + 1);
    match store.claim(&claim_of(job, last, tick, lease)).await.expect("the store answers") {
        RunClaimOutcome::Claimed { fence } => (tick, fence),
        other => unreachable!("a free tick was not handed out: {other:?}"),
    }
}

fn end_of(job: &str, tick: Millis, fence: u64) -> RunEnd {
    RunEnd { job: job.to_owned(), tick, fence, error: None, passed: None, keep: 100 }
}

async fn a_new_job_begins_now(store: &dyn JobStore) {
    let first = store.open("new").await.expect("the store answers");
    assert!(
        first.last_tick <= first.now && first.now.since(first.last_tick) < LONG,
        "a new job does not begin now"
    );
    assert_eq!(first.running_until, None, "a new job is in progress");
    let second = store.open("new").await.expect("the store answers");
    assert_eq!(second.last_tick, first.last_tick, "a second process began the job anew");
    assert!(second.now >= first.now, "the store's clock runs backwards");
    assert!(store.history("new", 10).await.expect("the store answers").is_empty());
}

async fn a_tick_is_claimed_once(store: &Arc<dyn JobStore>) {
    let mut last = last_tick(&**store, "once").await;
    let mut fences = Vec::new();
    for _ in 0..20 {
        let tick = Millis(last.0 + 1);
        let mut claims = tokio::task::JoinSet::new();
        for number in 0..4 {
            let store = store.clone();
            let claim = RunClaim { owner: format!("owner-{number}"), ..claim_of("once", last, tick, LONG) };
            claims.spawn(async move { store.claim(&claim).await });
        }
        let outcomes = claims.join_all().await;
        let claimed = outcomes.iter().filter_map(|outcome| match outcome {
            Ok(RunClaimOutcome::Claimed { fence }) => Some(*fence),
            _ => None,
        });
        let claimed: Vec<u64> = claimed.collect();
        assert_eq!(
            claimed.len(),
            1,
            "a claim is not exclusive: a tick was handed out {} times",
            claimed.len()
        );
        assert!(store.finish(&end_of("once", tick, claimed[0])).await.expect("the store answers"));
        let again = store.claim(&claim_of("once", last, tick, LONG)).await.expect("the store answers");
        assert_eq!(again, RunClaimOutcome::Taken, "a tick was handed out again after its run");
        fences.push(claimed[0]);
        last = tick;
    }
    assert!(
        fences.is_sorted_by(|one, next| one < next),
        "the fence does not grow with every run: {fences:?}"
    );
}

async fn a_run_in_progress_keeps_others_out(store: &dyn JobStore) {
    let (tick, fence) = claim_next(store, "busy", LONG).await;
    let state = store.open("busy").await.expect("the store answers");
    assert_eq!(state.last_tick, tick);
    assert!(state.running_until.is_some_and(|until| until > state.now), "a run in progress is not seen");
    let next = claim_of("busy", tick, Millis(tick.0 + 1), LONG);
    let outcome = store.claim(&next).await.expect("the store answers");
    assert_eq!(outcome, RunClaimOutcome::Running, "two runs of a job are in progress");
    let passed = MissedTicks { job: "busy".to_owned(), after: tick, tick: Millis(tick.0 + 1), missed: 1 };
    assert!(!store.pass(&passed).await.expect("the store answers"), "ticks were passed over during a run");
    assert!(store.finish(&end_of("busy", tick, fence)).await.expect("the store answers"));
    assert_eq!(store.open("busy").await.expect("the store answers").running_until, None);
    let outcome = store.claim(&next).await.expect("the store answers");
    assert!(matches!(outcome, RunClaimOutcome::Claimed { .. }), "a job is blocked after its run");
}

async fn a_dead_run_is_recorded_as_abandoned(store: &dyn JobStore) {
    let (first, _) = claim_next(store, "dead", Duration::from_millis(1)).await;
    let second = Millis(first.0 + 1);
    let claim = claim_of("dead", first, second, LONG);
    let mut outcome = store.claim(&claim).await.expect("the store answers");
    while outcome == RunClaimOutcome::Running {
        tokio::time::sleep(Duration::from_millis(5)).await;
        outcome = store.claim(&claim).await.expect("the store answers");
    }
    assert!(matches!(outcome, RunClaimOutcome::Claimed { .. }), "a dead run blocks the job: {outcome:?}");
    let history = store.history("dead", 10).await.expect("the store answers");
    let states: Vec<_> = history.iter().map(|run| (run.tick, run.state)).collect();
    assert_eq!(
        states,
        [(second, RunState::Running), (first, RunState::Abandoned)],
        "a dead run is not recorded"
    );
}

async fn a_lost_run_records_nothing(store: &dyn JobStore) {
    let (first, old) = claim_next(store, "lost", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (second, fence) = claim_next(store, "lost", LONG).await;
    assert!(fence > old, "the fence does not grow with every run");
    assert!(!store.renew("lost", old, LONG).await.expect("the store answers"), "a lost run was renewed");
    let late = store.finish(&end_of("lost", first, old)).await.expect("the store answers");
    assert!(!late, "a lost run recorded its end");
    let state = store.open("lost").await.expect("the store answers");
    assert!(state.running_until.is_some(), "a lost run ended the run of another process");
    let history = store.history("lost", 10).await.expect("the store answers");
    assert_eq!((history[0].tick, history[0].state), (second, RunState::Running));
    assert_eq!(history[1].state, RunState::Abandoned);
}

async fn leases_are_renewed(store: &dyn JobStore) {
    let (tick, fence) = claim_next(store, "renewed", Duration::from_millis(200)).await;
    assert!(store.renew("renewed", fence, LONG).await.expect("the store answers"));
    tokio::time::sleep(Duration::from_millis(250)).await;
    let next = claim_of("renewed", tick, Millis(tick.0 + 1), LONG);
    let outcome = store.claim(&next).await.expect("the store answers");
    assert_eq!(outcome, RunClaimOutcome::Running, "a renewed lease ended");
    assert!(store.finish(&end_of("renewed", tick, fence)).await.expect("the store answers"));
    assert!(
        !store.renew("renewed", fence, LONG).await.expect("the store answers"),
        "a run was renewed after its end"
    );
    assert!(
        !store.finish(&end_of("renewed", tick, fence)).await.expect("the store answers"),
        "a run ended twice"
    );
}

async fn ticks_are_passed_over(store: &dyn JobStore) {
    let last = last_tick(store, "passed").await;
    let newest = Millis(last.0 + 70);
    let passed = MissedTicks { job: "passed".to_owned(), after: last, tick: newest, missed: 7 };
    assert!(store.pass(&passed).await.expect("the store answers"));
    assert!(!store.pass(&passed).await.expect("the store answers"), "ticks were passed over twice");
    assert_eq!(last_tick(store, "passed").await, newest);
    let taken = store.claim(&claim_of("passed", last, newest, LONG)).await.expect("the store answers");
    assert_eq!(taken, RunClaimOutcome::Taken, "a tick was run after it was passed over");
    let (tick, fence) = claim_next(store, "passed", LONG).await;
    let after = Millis(tick.0 + 30);
    let end = RunEnd { passed: Some((after, 3)), ..end_of("passed", tick, fence) };
    assert!(store.finish(&end).await.expect("the store answers"));
    assert_eq!(last_tick(store, "passed").await, after, "ticks during a run were not passed over");
    let history = store.history("passed", 10).await.expect("the store answers");
    let found: Vec<_> = history.iter().map(|run| (run.tick, run.state, run.missed)).collect();
    use RunState::{Missed, Succeeded};
    assert_eq!(
        found,
        [(after, Missed, 3), (tick, Succeeded, 0), (newest, Missed, 7)],
        "missed ticks are not recorded"
    );
}

async fn the_history_is_kept_and_bounded(store: &dyn JobStore) {
    for number in 0..6 {
        let last = last_tick(store, "history").await;
        let tick = Millis(last.0 + 1);
        let claim = RunClaim { missed: number, ..claim_of("history", last, tick, LONG) };
        let RunClaimOutcome::Claimed { fence } = store.claim(&claim).await.expect("the store answers") else {
            unreachable!("a free tick was not handed out")
        };
        let error = (number % 2 == 1).then(|| format!("no disk: `{number}` \u{e9}\nsecond line | end"));
        let end = RunEnd { error, keep: 4, ..end_of("history", tick, fence) };
        assert!(store.finish(&end).await.expect("the store answers"));
    }
    let history = store.history("history", 10).await.expect("the store answers");
    assert_eq!(history.len(), 4, "the history is not bounded");
    for (run, number) in history.iter().zip([5_u64, 4, 3, 2]) {
        let failed = number % 2 == 1;
        let error = failed.then(|| format!("no disk: `{number}` \u{e9}\nsecond line | end"));
        assert_eq!((run.missed, &run.error), (number, &error), "a run reads otherwise than it was recorded");
        assert_eq!(run.state, if failed { RunState::Failed } else { RunState::Succeeded });
        assert_eq!(run.owner, "first");
        assert!(run.ended_at.is_some_and(|ended| ended >= run.started_at));
    }
    assert_eq!(store.history("history", 1).await.expect("the store answers").len(), 1);
}

async fn jobs_are_apart(store: &dyn JobStore) {
    claim_next(store, "apart-1", LONG).await;
    claim_next(store, "apart-2", LONG).await;
    assert_eq!(
        store.history("apart-1", 10).await.expect("the store answers").len(),
        1,
        "jobs share their history"
    );
}

/// Errors hold what others sent: a text that a database can't hold must not keep the end of a run from being recorded.
async fn any_text_of_an_error_is_recorded(store: &dyn JobStore) {
    let (tick, fence) = claim_next(store, "texts", LONG).await;
    let end = RunEnd { error: Some("no\0 disk".to_owned()), ..end_of("texts", tick, fence) };
    assert!(store.finish(&end).await.expect("a NUL in an error keeps the end of a run from being recorded"));
    let history = store.history("texts", 1).await.expect("the store answers");
    let error = history[0].error.as_deref().unwrap_or_default();
    assert!(error.contains("disk"), "the text of an error with a NUL is lost");
}
