//! Sagas that an operator lets go on.

use std::sync::Arc;
use std::time::Duration;

use seawall_dist::saga::{EntryKind, MemorySagaStore, NewSaga, Saga, SagaEnd, SagaError, SagaState};

use super::{LEASE, Record, fine, sagas, step, transfer};

/// A saga that went forward, needs attention, and whose deadline has passed.
async fn stuck(store: &Arc<MemorySagaStore>, record: &Record) {
    let handle = sagas(store, transfer(record).timeout(LEASE * 3)).build().unwrap();
    let mut future = Box::pin(handle.start(NewSaga::new("transfer", "t1", "")));
    let _ = seawall_testkit::poll_once(future.as_mut());
    drop(future);
    tokio::time::sleep(LEASE * 2).await;
    let changed = Saga::builder("transfer", 1).step(step("take", record, fine, fine));
    sagas(store, changed).build().unwrap().run_due().await.unwrap();
    let found = handle.get("t1").await.unwrap().unwrap();
    assert_eq!(found.state, SagaState::NeedsAttention);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
}

/// CRD-5: a saga that went forward goes on forward after a retry, with a new deadline.
#[tokio::test(start_paused = true)]
async fn crd_5_a_retried_saga_has_a_new_deadline() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    stuck(&store, &record).await;
    let handle = sagas(&store, transfer(&record).timeout(LEASE * 3)).build().unwrap();
    let end = handle.retry("t1").await.unwrap();
    assert!(matches!(end, SagaEnd::Completed(_)), "{end:?}");
    let found = handle.get("t1").await.unwrap().unwrap();
    let reopened = found.journal.iter().find(|entry| entry.kind == EntryKind::Reopened).unwrap();
    assert_eq!(found.deadline_at.since(reopened.at), LEASE * 3, "the store has the old deadline");
}

/// CRD-5: the new deadline holds for the process that takes the saga over from the operator's.
#[tokio::test(start_paused = true)]
async fn crd_5_a_retried_saga_keeps_its_new_deadline_in_another_process() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    stuck(&store, &record).await;
    let handle = sagas(&store, transfer(&record).timeout(LEASE * 3)).build().unwrap();
    let mut future = Box::pin(handle.retry("t1"));
    let _ = seawall_testkit::poll_once(future.as_mut());
    drop(future);
    tokio::time::sleep(LEASE * 2).await;
    handle.run_due().await.unwrap();
    assert_eq!(handle.get("t1").await.unwrap().unwrap().state, SagaState::Completed);
}

/// CRD-5: an operator who asks a process that does not know the definition does not lock the others out.
#[tokio::test(start_paused = true)]
async fn crd_5_a_retry_in_a_stranger_claims_nothing() {
    let (store, record) = (Arc::new(MemorySagaStore::new()), Record::default());
    stuck(&store, &record).await;
    let billing = Saga::builder("billing", 1).step(step("bill", &record, fine, fine));
    let stranger = sagas(&store, billing).build().unwrap();
    for end in [stranger.retry("t1").await, stranger.compensate("t1", "").await] {
        assert!(matches!(end, Err(SagaError::UnknownDefinition { .. })), "{end:?}");
    }
    let handle = sagas(&store, transfer(&record)).build().unwrap();
    let end = handle.retry("t1").await;
    assert!(end.is_ok(), "{end:?}");
}
