//! What a guard around `once` makes of its errors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seawall::{Backoff, Clock, Fault, Guard, Ran, Retry};
use seawall_dist::StoreError;
use seawall_dist::idempotency::{FailureAction, Idempotency, Inbox, MemoryIdempotency, OnceError};

use super::once::handle;
use super::{BODY, key};

fn guard() -> Guard {
    let backoff = Backoff::constant(Duration::from_secs(20)).no_jitter();
    Guard::builder("payments")
        .no_call_timeout()
        .retry(Retry::max_attempts(5).backoff(backoff))
        .build()
        .unwrap()
}

/// CRD-2: work that is done is not done again by a guard, although its result could not be stored.
#[tokio::test(start_paused = true)]
async fn crd_2_a_guard_does_not_repeat_work_whose_result_is_not_stored() {
    let (store, idempotency) = handle();
    let runs = AtomicU32::new(0);
    let back = async {
        // Longer than the lease, and shorter than the guard's patience.
        tokio::time::sleep(Duration::from_secs(45)).await;
        store.away.store(false, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let key = key("a");
    let call = guard();
    let call = call.call(|_| {
        idempotency.once(&key, BODY, async |_| {
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                store.away.store(true, Ordering::Relaxed);
            }
            Ok::<_, io::Error>(b"charged".to_vec())
        })
    });
    let result = tokio::select! {
        result = call => result,
        () = back => unreachable!(),
    };
    assert_eq!(runs.load(Ordering::Relaxed), 1, "the guard repeated work that was done");
    let error = result.unwrap_err();
    assert!(matches!(error.last(), Some(OnceError::NotRecorded { .. })), "{error:?}");
}

type MakeError = fn() -> OnceError<io::Error>;

/// CRD-2: a guard reads each error as what it is: what ran, what may be repeated, and when. A plain guard repeats only what did
/// not run.
#[tokio::test(start_paused = true)]
async fn crd_2_a_guard_knows_what_each_error_means() {
    let lost = || StoreError::new("storing a result", Fault::unreachable(), "connection refused");
    let invalid = || {
        let inbox = Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new()))).unwrap();
        let call = inbox.handle("", |_| async { Ok::<(), io::Error>(()) });
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(call).poll(&mut context) {
            std::task::Poll::Ready(Err(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    // The attempts of a plain guard, those of an idempotent one, and whether the work ran.
    let cases: [(MakeError, u32, u32, Ran); 12] = [
        (invalid, 1, 1, Ran::No),
        (|| OnceError::in_flight(Duration::from_secs(30)), 5, 5, Ran::No),
        (|| OnceError::Mismatch, 1, 1, Ran::No),
        (|| OnceError::Unknown, 1, 1, Ran::No),
        (|| OnceError::StoredFailure(Vec::new()), 1, 1, Ran::Yes),
        (|| OnceError::not_started(StoreError::without_cause("claiming", Fault::timeout())), 5, 5, Ran::No),
        (|| OnceError::Lost, 1, 5, Ran::Unknown),
        (|| OnceError::NotRecorded { bytes: Vec::new(), error: None }, 1, 1, Ran::Yes),
        (|| OnceError::TooLarge { bytes: Vec::new(), limit: 3 }, 1, 1, Ran::Yes),
        (|| failed(io::ErrorKind::ConnectionRefused), 5, 5, Ran::No),
        (|| failed(io::ErrorKind::ConnectionReset), 1, 5, Ran::Unknown),
        (|| failed(io::ErrorKind::InvalidInput), 1, 1, Ran::No),
    ];
    for (make, plain, idempotent, ran) in cases {
        let guard = guard();
        let began = Clock::tokio().now();
        let error = guard.call(|_| async { Err::<(), _>(make()) }).await.unwrap_err();
        assert_eq!((error.attempts(), error.last_fault().did_run()), (plain, ran), "{:?}", make());
        if let Some(wait) = make().retry_after() {
            assert!(Clock::tokio().now().since(began) >= wait * 4, "the guard did not wait");
        }
        if let Some(fault) = make().fault() {
            assert_eq!(fault, Fault::of_error(&make()), "{:?}", make());
        }
        let error = guard.idempotent().call(|_| async { Err::<(), _>(make()) }).await.unwrap_err();
        assert_eq!(error.attempts(), idempotent, "{:?}", make());
    }
    let not_recorded = OnceError::<io::Error>::NotRecorded { bytes: Vec::new(), error: Some(lost()) };
    assert_eq!(Fault::of_error(&not_recorded), not_recorded.fault().unwrap());
    assert!(not_recorded.to_string().ends_with("storing a result failed: connection refused"));
}

fn failed(kind: io::ErrorKind) -> OnceError<io::Error> {
    OnceError::Failed { error: kind.into(), recorded: true }
}

/// CRD-2: a caller learns that the store could not be told that the key is blocked, or free.
#[tokio::test(start_paused = true)]
async fn crd_2_a_caller_learns_that_the_store_missed_the_failure() {
    let (store, idempotency) = handle();
    let actions = [FailureAction::Block, FailureAction::Store(b"409".to_vec()), FailureAction::Release];
    for (number, action) in actions.into_iter().enumerate() {
        store.away.store(false, Ordering::Relaxed);
        let work = async |_| {
            store.away.store(true, Ordering::Relaxed);
            Err::<Vec<u8>, _>(io::Error::other("no"))
        };
        let failed = idempotency.once_or(&key(&number.to_string()), BODY, work, |_| action).await;
        assert!(matches!(failed, Err(OnceError::Failed { recorded: false, .. })), "{failed:?}");
    }
}
