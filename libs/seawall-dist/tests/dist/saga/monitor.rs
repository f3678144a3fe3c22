//! The monitor: places, clean-up, and an orderly stop while the store hangs.

use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
use seawall_dist::saga::{
    MemorySagaStore, NewSaga, Saga, SagaFilter, SagaState, SagaStep, SagaStore, StepContext, StepError,
};
use tokio::time::{sleep, timeout};

use super::scripted::{Call, ScriptedStore};
use super::{LEASE, Record, sagas, transfer};

const MINUTE: Duration = Duration::from_secs(60);

/// CRD-5: an orderly stop ends although a call of the store never does.
#[tokio::test(start_paused = true)]
async fn crd_5_a_stop_does_not_wait_for_a_store_that_hangs() {
    use Call::{ClaimDue, CleanUp, Count, Release, Renew, Unclaimed, Write};
    for hanging in [&[ClaimDue][..], &[Count], &[Unclaimed], &[CleanUp], &[Release, Write], &[Renew, Write]] {
        let (store, record) = (Arc::new(ScriptedStore::default()), Record::default());
        let handle = sagas(&store, transfer(&record)).build().unwrap();
        handle.submit(NewSaga::new("transfer", "t1", "")).await.unwrap();
        store.hang(hanging);
        let stop = async {
            // Chance shifts the periods: at the end the call hangs.
            sleep(MINUTE * 2).await;
        };
        let run = timeout(MINUTE * 2 + LEASE * 10, handle.run(stop));
        assert!(run.await.is_ok(), "the stop hangs while {hanging:?} do");
    }
}

/// CRD-5: a store that hung is asked again: the monitor does not wait for the old call for ever.
#[tokio::test(start_paused = true)]
async fn crd_5_a_monitor_goes_on_after_a_store_that_hung() {
    for hanging in [Call::ClaimDue, Call::Count, Call::Unclaimed, Call::CleanUp, Call::Write] {
        let (store, record) = (Arc::new(ScriptedStore::default()), Record::default());
        let handle = sagas(&store, transfer(&record)).build().unwrap();
        let script = async {
            store.hang(&[hanging]);
            sleep(MINUTE * 2).await;
            handle.submit(NewSaga::new("transfer", "t1", "")).await.unwrap();
            sleep(LEASE * 3).await;
            store.hang(&[]);
            sleep(MINUTE).await;
        };
        assert!(timeout(MINUTE * 10, handle.run(script)).await.is_ok(), "{hanging:?} hangs for ever");
        let found = handle.get("t1").await.unwrap().unwrap();
        assert_eq!(found.state, SagaState::Completed, "after {hanging:?} hung");
    }
}

/// CRD-5: calls of a handle fail when the store does not answer, and say what failed.
#[tokio::test(start_paused = true)]
async fn crd_5_a_store_that_hangs_is_an_error() {
    let (store, record) = (Arc::new(ScriptedStore::default()), Record::default());
    let handle = sagas(&store, transfer(&record)).build().unwrap();
    handle.submit(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let new = |id| NewSaga::new("transfer", id, "");
    store.hang(&[Call::Create, Call::Get, Call::List, Call::ClaimDue]);
    let calls = async {
        [
            handle.start(new("t2")).await.err(),
            handle.submit(new("t3")).await.err(),
            handle.resume("t1").await.err(),
            handle.get("t1").await.err(),
            handle.retry("t1").await.err(),
            handle.needing_attention(None, 1).await.err(),
            handle.unclaimed(None, 1).await.err(),
            handle.run_due().await.err(),
        ]
    };
    for error in timeout(MINUTE, calls).await.expect("a call hangs") {
        let error = anyhow::Error::from(error.expect("a call succeeded without its store"));
        assert!(format!("{error:#}").contains("no answer within"), "{error:#}");
    }
    store.hang(&[Call::Claim]);
    let claims = async { [handle.resume("t1").await.is_err(), handle.resolve("t1", "").await.is_err()] };
    assert_eq!(timeout(MINUTE, claims).await.expect("a claim hangs"), [true; 2]);
}

/// CRD-5: a place that becomes free is used at once, also if all were busy when the monitor last looked.
#[tokio::test(start_paused = true)]
async fn crd_5_a_freed_place_is_used_at_once() {
    const PERIOD: Duration = Duration::from_secs(100);
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let steps = record.clone();
    let slow = SagaStep::new("sleep", move |context: StepContext| {
        let steps = steps.clone();
        async move {
            sleep(PERIOD * 4).await;
            steps.add(context.saga_id.to_string());
            Ok::<_, StepError>(())
        }
    })
    .timeout(PERIOD * 10);
    let slow = Saga::builder("slow", 1).step(slow).timeout(PERIOD * 100);
    let handle = sagas(&store, slow).monitor_period(PERIOD).monitor_concurrency(1).build().unwrap();
    let (clock, began) = (Clock::default(), Clock::default().precise());
    for number in 0..10 {
        handle.submit(NewSaga::new("slow", &format!("s{number}"), "")).await.unwrap();
    }
    let stop = async {
        while record.0.lock().unwrap().len() < 10 {
            sleep(LEASE).await;
        }
    };
    handle.run(stop).await;
    let idle = clock.precise().since(began).saturating_sub(PERIOD * 40);
    assert!(idle < PERIOD / 2, "places were idle for {idle:?}");
}

/// CRD-5: ended sagas are deleted as fast as they come.
#[tokio::test(start_paused = true)]
async fn crd_5_clean_up_goes_on_while_there_is_more() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let handle = sagas(&store, transfer(&record)).retention(MINUTE).build().unwrap();
    for number in 0..1_700 {
        let end = handle.start(NewSaga::new("transfer", &format!("t{number}"), "")).await.unwrap();
        assert!(matches!(end, seawall_dist::saga::SagaEnd::Completed(_)));
    }
    sleep(MINUTE * 2).await;
    handle.run(sleep(LEASE)).await;
    let filter = SagaFilter { state: None, unclaimed_for: None, after: None, limit: u32::MAX };
    assert_eq!(store.list(&filter).await.unwrap().len(), 0, "old sagas are left");
}
