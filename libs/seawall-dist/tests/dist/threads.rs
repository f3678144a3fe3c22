//! Every future that a user gets may move from thread to thread.

use std::io;
use std::sync::Arc;

use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters};
use seawall_dist::idempotency::{Idempotency, IdempotencyKey, Inbox, MemoryIdempotency, fingerprint};
use seawall_dist::lock::{Locks, MemoryLocks};
use seawall_dist::saga::{MemorySagaStore, NewSaga, Sagas};
use seawall_dist::schedule::{Jobs, MemoryJobStore};

/// Compiles if the future may be given to `tokio::spawn`, borrowed data aside.
fn is_send<F: Future + Send>(future: F) -> F {
    future
}

/// CRD-1: work under a lock runs on any thread, with work of a closure and of a function.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_1_calls_under_a_lock_are_send() {
    let locks = Locks::new(Arc::new(MemoryLocks::new()));
    let spawned = locks.clone();
    let task = tokio::task::JoinSet::from_iter([async move {
        spawned.with_lock("lock:threads:test:1", |lease| async move { lease.fence() }).await
    }]);
    assert!(task.join_all().await[0].is_ok());
    is_send(locks.with_user_transaction(7, |_| async {})).await.unwrap();
    let lost = locks.key("lock:threads:test:2").with(|lease| async move { drop(is_send(lease.lost())) });
    is_send(lost).await.unwrap();
}

/// CRD-2, CRD-4: so do work under a key and the handling of a message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_2_calls_under_a_key_are_send() {
    let idempotency = Idempotency::new(Arc::new(MemoryIdempotency::new()));
    let key = IdempotencyKey::new("tenant", "a").unwrap();
    let print = fingerprint([b"body".as_slice()]);
    let once = idempotency.once(&key, print, |_| async { Ok::<_, io::Error>(Vec::new()) });
    is_send(once).await.unwrap();
    let detached = idempotency.once_detached(&key, print, |_| async { Ok::<_, io::Error>(Vec::new()) });
    is_send(detached).await.unwrap();
    is_send(idempotency.wait_for_detached()).await;
    let inbox = Inbox::new("billing", idempotency).unwrap();
    is_send(inbox.handle("event", |_| async { Ok::<_, io::Error>(()) })).await.unwrap();
}

/// CRD-5, CRD-6, CRD-7: so do sagas, jobs and the desk of dead letters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_5_sagas_jobs_and_dead_letters_are_send() {
    let sagas = Sagas::builder(Arc::new(MemorySagaStore::new())).build().unwrap();
    assert!(is_send(sagas.start(NewSaga::new("nobody", "a", Vec::new()))).await.is_err());
    is_send(sagas.run(std::future::ready(()))).await;
    let jobs = Jobs::builder(Arc::new(MemoryJobStore::new())).build().unwrap();
    is_send(jobs.run(std::future::ready(()))).await;
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    assert!(is_send(letters.search("nothing", 1)).await.unwrap().letters.is_empty());
}
