//! Panics outside of a step's future.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall_dist::saga::{
    MemorySagaStore, NewSaga, Saga, SagaEnd, SagaState, SagaStep, StepContext, StepError,
};

use super::scripted::{Call, ScriptedStore};
use super::{LEASE, Record, fine, sagas, step, transfer};

/// CRD-5: closures that panic before they have made their futures are failed attempts, as the panics of their futures are.
#[tokio::test(start_paused = true)]
async fn crd_5_a_closure_that_panics_is_a_failed_attempt() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    let calls = Arc::new(AtomicU32::new(0));
    let panics = SagaStep::new("print", |_: StepContext| {
        assert!(std::hint::black_box(false), "no paper");
        async { Ok::<_, StepError>(()) }
    })
    .compensate(move |_| {
        assert!(calls.fetch_add(1, Ordering::Relaxed) == 1, "no ink");
        async { Ok::<_, StepError>(()) }
    });
    let saga = Saga::builder("transfer", 1).step(step("debit", &record, fine, fine)).step(panics);
    let sagas = sagas(&store, saga).build().unwrap();
    let end = sagas.start(NewSaga::new("transfer", "t1", "")).await.unwrap();
    let SagaEnd::Compensated { reason } = end else { panic!("{end:?}") };
    assert_eq!(reason, "step `print` failed: panicked: no paper");
    let found = sagas.get("t1").await.unwrap().unwrap();
    assert!(found.journal.iter().any(|entry| entry.text.as_deref() == Some("panicked: no ink")));
    assert_eq!(record.take(), ["debit", "undo debit"]);
}

/// CRD-5: a panic in a driven saga is logged, and a monitor takes the saga over again.
#[cfg(all(feature = "metrics", feature = "tracing"))]
#[tokio::test(start_paused = true)]
async fn crd_5_a_panic_in_a_monitor_is_logged() {
    let lines = seawall_testkit::observe::Lines::collect();
    let (store, record) = (Arc::new(ScriptedStore::default()), Record::default());
    let handle = sagas(&store, transfer(&record)).build().unwrap();
    store.next(Call::Write, || panic!("no disk"));
    for id in ["t1", "t2"] {
        handle.submit(NewSaga::new("transfer", id, "")).await.unwrap();
    }
    let monitor = handle.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { monitor.run(std::future::pending()).await });
    tokio::time::sleep(LEASE * 5).await;
    for id in ["t1", "t2"] {
        assert_eq!(handle.get(id).await.unwrap().unwrap().state, SagaState::Completed);
    }
    let logged = lines.of("ERROR [Saga][Drive] Failed!");
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(logged[0].contains("no disk"), "{logged:?}");
}
