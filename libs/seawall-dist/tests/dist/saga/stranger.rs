//! Processes that share a store and do not know the same definitions.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::saga::{MemorySagaStore, NewSaga, Saga, SagaEnd, SagaError, SagaState};

use super::{Record, fine, sagas, step, transfer};

/// CRD-5: a process leaves sagas alone whose definition it does not know, however long their own process is away.
#[tokio::test(start_paused = true)]
async fn crd_5_a_process_leaves_unknown_definitions_alone() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let service = sagas(&store, transfer(&record)).build().unwrap();
    service.submit(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let billing = Saga::builder("billing", 1).step(step("bill", &record, fine, fine));
    let stranger = sagas(&store, billing).build().unwrap();
    let hour = Duration::from_secs(3_600);
    stranger.run(tokio::time::sleep(hour)).await;
    assert_eq!(stranger.run_due().await.unwrap(), 0);
    let found = stranger.get("t1").await.unwrap().unwrap();
    assert_eq!((found.state, found.journal.len()), (SagaState::Running, 0), "a stranger changed a saga");
    // Who asks for it by name does not keep its own process out either.
    let error = stranger.resume("t1").await.unwrap_err();
    assert!(matches!(error, SagaError::UnknownDefinition { .. }), "{error}");
    service.run_due().await.unwrap();
    let end = service.resume("t1").await.unwrap();
    assert!(matches!(end, SagaEnd::Completed(_) | SagaEnd::Compensated { .. }), "{end:?}");
    // How it ended may be asked by anybody.
    assert!(stranger.resume("t1").await.is_ok());
}

/// CRD-5, OBS-2: what no process has claimed for long is listed and shown as a number, by definition.
#[cfg(all(feature = "metrics", feature = "tracing"))]
#[tokio::test(start_paused = true)]
async fn crd_5_sagas_that_nobody_claims_are_shown() {
    use seawall_testkit::observe::Lines;

    use crate::observe::numbers;
    let (numbers, lines) = (numbers(), Lines::collect());
    let _recorder = metrics::set_default_local_recorder(&numbers);
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let service = sagas(&store, transfer(&record)).build().unwrap();
    for id in ["t1", "t2", "t3"] {
        service.submit(NewSaga::new("transfer", id, "")).await.unwrap();
    }
    let billing = Saga::builder("billing", 1).step(step("bill", &record, fine, fine));
    let minute = Duration::from_secs(60);
    let stranger = sagas(&store, billing).unclaimed_after(minute).build().unwrap();
    let gauge = || numbers.get("seawall.sagas.unclaimed{saga=transfer@1}");
    stranger.run(tokio::time::sleep(minute / 2)).await;
    assert_eq!((gauge(), stranger.unclaimed(None, 10).await.unwrap().len()), (None, 0), "it is too early");
    stranger.run(tokio::time::sleep(minute)).await;
    assert_eq!(gauge(), Some(3.0));
    let page = stranger.unclaimed(Some("t1"), 1).await.unwrap();
    assert_eq!(page.iter().map(|saga| saga.id.as_str()).collect::<Vec<_>>(), ["t2"]);
    let logged = lines.of("WARN [Saga][Unclaimed] Failed!");
    assert_eq!(logged.len(), 1, "one line for one definition, not one in every period: {logged:?}");
    assert!(logged[0].contains("saga=transfer@1") && logged[0].contains("count=3"), "{logged:?}");
    let stopping = async {
        tokio::time::sleep(minute).await;
        while service.run_due().await.unwrap() > 0 {}
        tokio::time::sleep(minute).await;
    };
    stranger.run(stopping).await;
    assert_eq!(gauge(), Some(0.0), "the number stays after the sagas are gone");
}
