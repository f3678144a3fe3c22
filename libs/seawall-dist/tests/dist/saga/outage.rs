//! How long the default attempts go on.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Tick};
use seawall_dist::saga::{MemorySagaStore, NewSaga, Saga, SagaEnd, SagaStep, StepContext, StepError};

use super::sagas;

const MINUTE: Duration = Duration::from_secs(60);

/// A peer that is away until a time.
fn peer(until: Tick) -> Result<(), StepError> {
    if Clock::default().precise() < until { Err(StepError::transient("connection refused")) } else { Ok(()) }
}

/// CRD-5: with the defaults a step bridges an outage of its peer of a minute, and a compensation one of ten minutes.
#[tokio::test(start_paused = true)]
async fn crd_5_the_defaults_bridge_an_outage() {
    let store = Arc::new(MemorySagaStore::new());
    // Chance shifts the attempts: what is promised holds every time.
    for number in 0..200 {
        let began = Clock::default().precise();
        let pay = SagaStep::new("pay", move |_: StepContext| async move { peer(began + MINUTE) });
        let forward = sagas(&store, Saga::builder("forward", 1).step(pay)).lease(MINUTE).build().unwrap();
        let end = forward.start(NewSaga::new("forward", &format!("f{number}"), "")).await.unwrap();
        assert!(matches!(end, SagaEnd::Completed(_)), "{end:?}");
    }
    for number in 0..50 {
        let began = Clock::default().precise();
        let undo = SagaStep::new("pay", |_| async { Err::<(), _>(StepError::permanent("no such account")) })
            .compensate(move |_| async move { peer(began + MINUTE * 10) });
        let backward = sagas(&store, Saga::builder("backward", 1).step(undo)).lease(MINUTE).build().unwrap();
        let end = backward.start(NewSaga::new("backward", &format!("b{number}"), "")).await.unwrap();
        assert!(matches!(end, SagaEnd::Compensated { .. }), "{end:?}");
    }
}

/// CRD-5: a peer that is away for good ends the default attempts within the bounds that the page names: those of a step before
/// the default deadline of the saga.
#[tokio::test(start_paused = true)]
async fn crd_5_the_default_attempts_end() {
    let store = Arc::new(MemorySagaStore::new());
    let away = |_: StepContext| async { Err::<(), _>(StepError::transient("connection refused")) };
    let saga = Saga::builder("away", 1).step(SagaStep::new("pay", away).compensate(away));
    let handle = sagas(&store, saga).lease(MINUTE).build().unwrap();
    for number in 0..50 {
        let end = handle.start(NewSaga::new("away", &format!("a{number}"), "")).await.unwrap();
        assert!(matches!(end, SagaEnd::NeedsAttention { .. }), "{end:?}");
        let found = handle.get(&format!("a{number}")).await.unwrap().unwrap();
        let failed = found.journal.iter().find(|entry| entry.text.is_some() && entry.attempt == 20);
        let forward = failed.expect("a step has 20 attempts").at.since(found.created_at).as_secs_f64();
        assert!((71.0..=143.5).contains(&forward), "the attempts at a step took {forward} s");
        let backward = found.updated_at.since(found.created_at).as_secs_f64() - forward;
        assert!((650.0..=1_303.0).contains(&backward), "the attempts at a compensation took {backward} s");
    }
}
