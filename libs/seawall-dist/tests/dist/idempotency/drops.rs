use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use seawall_dist::StoreFuture;
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, Idempotency, IdempotencyKey, IdempotencyStore, LEASE, MemoryIdempotency,
    StoredResult,
};

use super::{BODY, key};

/// A store whose every step takes several polls, before and after it takes effect.
#[derive(Default)]
struct Slow(MemoryIdempotency);

async fn slowly<T>(step: impl Future<Output = T>) -> T {
    tokio::task::yield_now().await;
    let answer = step.await;
    tokio::task::yield_now().await;
    answer
}

impl IdempotencyStore for Slow {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(slowly(self.0.claim(key, request)))
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(slowly(self.0.renew(key, holder, lease)))
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(slowly(self.0.complete(key, holder, result, ttl)))
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(slowly(self.0.release(key, holder)))
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(slowly(self.0.resolve(key, result)))
    }
}

/// Polls a future so many times and drops it. True if it ended by itself.
fn drop_after<F: Future>(future: F, polls: usize) -> bool {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| future.as_mut().poll(&mut context).is_ready())
}

/// PRM-4: a call that is dropped at any poll leaves its key free if the work had not begun, done if it had ended, and to its
/// lease in between. Nothing is left for ever.
#[tokio::test(start_paused = true)]
async fn prm_4_a_call_dropped_at_any_poll_leaves_no_key_behind() {
    let idempotency = Idempotency::new(Arc::new(Slow::default()));
    let second = async |_| Ok::<_, io::Error>(b"second".to_vec());
    for polls in 0..100 {
        let key = key(&format!("k-{polls}"));
        let (began, finished) = (AtomicBool::new(false), AtomicBool::new(false));
        let work = async |_| {
            began.store(true, Ordering::Relaxed);
            tokio::task::yield_now().await;
            finished.store(true, Ordering::Relaxed);
            Ok::<_, io::Error>(b"first".to_vec())
        };
        let ended = drop_after(idempotency.once(&key, BODY, work), polls);
        // The task that cleans up has a few polls of its own.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let mut next = idempotency.once(&key, BODY, second).await;
        let (began, finished) = (began.load(Ordering::Relaxed), finished.load(Ordering::Relaxed));
        if began && !finished {
            assert!(next.unwrap_err().retry_after().is_some(), "it runs twice, after {polls} polls");
            tokio::time::sleep(LEASE).await;
            next = idempotency.once(&key, BODY, second).await;
        }
        let expected: &[u8] = if finished { b"first" } else { b"second" };
        assert_eq!(next.expect("the key is blocked").bytes(), expected, "dropped after {polls} polls");
        if ended {
            assert!(polls >= 6, "the store was not slow");
            return;
        }
    }
    panic!("the call did not end within a hundred polls");
}
