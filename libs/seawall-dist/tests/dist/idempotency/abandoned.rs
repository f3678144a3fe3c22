//! Executions that nobody waits for any more: their outcome is unknown.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall::Clock;
use seawall_dist::idempotency::{
    AbandonedAction, FailureAction, Idempotency, IdempotencyKey, Inbox, MemoryIdempotency, OnceError,
    OnceOutcome,
};
use tokio::time::{sleep, timeout};

use super::once::{LEASE, handle};
use super::{BODY, key};

type Once = Result<OnceOutcome, OnceError<io::Error>>;

async fn charge(idempotency: &Idempotency, key: &IdempotencyKey) -> Once {
    idempotency.once(key, BODY, async |_| Ok(b"charged".to_vec())).await
}

/// The next call is told to wait, and runs when the lease has ended: what happens after the death of a process.
async fn expires(idempotency: &Idempotency, key: &IdempotencyKey, what: &str) {
    // A task that frees the key would have had its chance.
    sleep(Duration::from_millis(100)).await;
    let meanwhile = charge(idempotency, key).await.expect_err(what);
    assert!(meanwhile.retry_after().is_some_and(|wait| wait <= LEASE), "{what}: {meanwhile:?}");
    sleep(LEASE).await;
    assert!(!charge(idempotency, key).await.expect(what).is_replayed(), "{what}");
}

/// CRD-2: a client that disconnects while the charge is in flight, and asks again at once, is not charged twice.
#[tokio::test(start_paused = true)]
async fn crd_2_a_dropped_call_keeps_its_key_until_the_lease_ends() {
    let (_, idempotency) = handle();
    let hangs = async |_| pending::<Result<Vec<u8>, io::Error>>().await;
    let short = Duration::from_millis(10);
    let (plain, blocked) = (key("plain"), key("blocked"));
    assert!(timeout(short, idempotency.once(&plain, BODY, hangs)).await.is_err());
    expires(&idempotency, &plain, "dropped").await;
    let block = |_: &io::Error| FailureAction::Block;
    assert!(timeout(short, idempotency.once_or(&blocked, BODY, hangs, block)).await.is_err());
    expires(&idempotency, &blocked, "dropped, with a policy").await;
}

/// CRD-2: work that panicked may have taken effect.
#[tokio::test(start_paused = true)]
async fn crd_2_work_that_panics_keeps_its_key_until_the_lease_ends() {
    let (_, idempotency) = handle();
    let mut tasks = tokio::task::JoinSet::new();
    let panics = idempotency.clone();
    tasks.spawn(async move {
        let _: Once = panics.once(&key("a"), BODY, async |_| panic!("a bug")).await;
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    expires(&idempotency, &key("a"), "panicked").await;
}

/// CRD-2: work that was cancelled because its lease could not be renewed may have taken effect.
#[tokio::test(start_paused = true)]
async fn crd_2_work_that_lost_its_lease_keeps_its_key_until_the_lease_ends() {
    let (store, idempotency) = handle();
    store.renewals_hang.store(u32::MAX, Ordering::Relaxed);
    let lost = idempotency.once(&key("a"), BODY, async |_| pending::<Result<_, io::Error>>().await).await;
    assert!(matches!(lost, Err(OnceError::Lost)), "{lost:?}");
    expires(&idempotency, &key("a"), "lost").await;
}

/// CRD-2: work does not start under a claim whose lease has nearly ended when the store answers, and its key is freed.
#[tokio::test(start_paused = true)]
async fn crd_2_work_does_not_start_under_a_claim_that_was_answered_too_late() {
    let (store, idempotency) = handle();
    for millis in [27_500, 90_000] {
        let runs = AtomicU32::new(0);
        store.claim_millis.store(millis, Ordering::Relaxed);
        let began = Clock::tokio().now();
        let late = idempotency
            .once(&key("a"), BODY, async |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok::<_, io::Error>(Vec::new())
            })
            .await;
        assert_eq!(runs.load(Ordering::Relaxed), 0, "the lease had ended");
        assert!(matches!(late, Err(OnceError::Store(_))), "{late:?}");
        assert!(Clock::tokio().now().since(began) < LEASE, "a claim that hangs is given up");
        store.claim_millis.store(0, Ordering::Relaxed);
        sleep(Duration::from_millis(100)).await;
        charge(&idempotency, &key(&format!("b-{millis}"))).await.unwrap();
    }
    charge(&idempotency, &key("a")).await.expect("nothing ran, so the key is free");
}

/// CRD-2: an abandoned key is freed or blocked at once if its owner wants that.
#[tokio::test(start_paused = true)]
async fn crd_2_an_abandoned_key_is_freed_or_blocked_if_told() {
    let hangs = async |_| pending::<Result<Vec<u8>, io::Error>>().await;
    for action in [AbandonedAction::Release, AbandonedAction::Block] {
        let store = Arc::new(MemoryIdempotency::new());
        let idempotency = Idempotency::builder(store).on_abandoned(action).build().unwrap();
        let key = key("a");
        assert!(timeout(Duration::from_millis(10), idempotency.once(&key, BODY, hangs)).await.is_err());
        sleep(Duration::from_millis(100)).await;
        let next = charge(&idempotency, &key).await;
        if action == AbandonedAction::Release {
            assert!(!next.unwrap().is_replayed());
        } else {
            assert!(matches!(next, Err(OnceError::Unknown)), "{next:?}");
            sleep(LEASE * 2).await;
            assert!(matches!(charge(&idempotency, &key).await, Err(OnceError::Unknown)), "it ran again");
            assert!(idempotency.resolve(&key, None).await.unwrap());
            charge(&idempotency, &key).await.unwrap();
        }
    }
}

/// CRD-4: a message whose handler panicked may have been handled.
#[tokio::test(start_paused = true)]
async fn crd_4_a_message_whose_handler_panics_waits_for_the_lease() {
    let (_, idempotency) = handle();
    let inbox = Inbox::new("billing", idempotency).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    let panics = inbox.clone();
    tasks.spawn(async move {
        let work = |_| async { panic!("a bug") };
        let _: Result<_, OnceError<io::Error>> = panics.handle::<(), _, _>("m-1", work).await;
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    sleep(Duration::from_millis(100)).await;
    let meanwhile = inbox.handle("m-1", |_| async { Ok::<_, io::Error>(()) }).await;
    assert!(meanwhile.unwrap_err().retry_after().is_some());
}

/// CRD-2: detached work goes on without its caller, and the client that asks again gets its result.
#[tokio::test(start_paused = true)]
async fn crd_2_detached_work_goes_on_when_its_caller_goes() {
    let (_, idempotency) = handle();
    let runs = Arc::new(AtomicU32::new(0));
    let key = key("a");
    let counted = runs.clone();
    let charge = move |_| {
        let runs = counted.clone();
        async move {
            runs.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(5)).await;
            Ok::<_, io::Error>(b"charged".to_vec())
        }
    };
    let dropped =
        timeout(Duration::from_secs(1), idempotency.once_detached(&key, BODY, charge.clone())).await;
    assert!(dropped.is_err());
    let meanwhile = idempotency.once_detached(&key, BODY, charge.clone()).await.unwrap_err();
    assert!(meanwhile.retry_after().is_some());
    idempotency.wait_for_detached().await;
    let again = idempotency.once_detached(&key, BODY, charge.clone()).await.unwrap();
    assert_eq!((again.bytes(), again.is_replayed()), (&b"charged"[..], true));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    idempotency.wait_for_detached().await;
}

/// CRD-2: detached work that fails or panics does so for its caller too.
#[tokio::test(start_paused = true)]
async fn crd_2_detached_work_that_fails_tells_its_caller() {
    let (_, idempotency) = handle();
    let block = |_: &io::Error| FailureAction::Block;
    let fails = |_| async { Err::<Vec<u8>, _>(io::Error::other("no")) };
    let failed = idempotency.once_or_detached(&key("a"), BODY, fails, block).await;
    assert!(matches!(failed, Err(OnceError::Failed { recorded: true, .. })), "{failed:?}");
    assert!(matches!(charge(&idempotency, &key("a")).await, Err(OnceError::Unknown)));
    let mut tasks = tokio::task::JoinSet::new();
    let panics = idempotency.clone();
    tasks.spawn(async move {
        let bug = |_| async { panic!("a bug") };
        let _: Once = panics.once_detached(&key("b"), BODY, bug).await;
    });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    idempotency.wait_for_detached().await;
    expires(&idempotency, &key("b"), "panicked in its task").await;
}
