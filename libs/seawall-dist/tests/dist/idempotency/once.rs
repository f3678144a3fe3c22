use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use seawall::{Clock, Fault, Tick, Time};
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, FailureAction, Idempotency, IdempotencyKey, IdempotencyStore,
    MemoryIdempotency, OnceError, StoredResult, fingerprint,
};
use seawall_dist::{StoreError, StoreFuture};

use super::{BODY, key};

type Once = Result<seawall_dist::idempotency::OnceOutcome, OnceError<io::Error>>;

pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A store that can be away.
#[derive(Default)]
pub(super) struct Breakable {
    store: MemoryIdempotency,
    pub(super) away: AtomicBool,
    /// The number of renewals that are never answered.
    pub(super) renewals_hang: AtomicU32,
    /// The number of results whose store is never answered.
    pub(super) completes_hang: AtomicU32,
    /// How long the answer to a claim takes, in milliseconds.
    pub(super) claim_millis: AtomicU32,
}

impl Breakable {
    fn check(&self) -> Result<(), StoreError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(StoreError::new("asking the store", Fault::unreachable(), "away"));
        }
        Ok(())
    }
}

/// Never ends, as many times as the number says.
async fn hang(times: &AtomicU32) {
    if times.try_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1)).is_ok() {
        std::future::pending::<()>().await;
    }
}

impl IdempotencyStore for Breakable {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        Box::pin(async move {
            let answer = self.check().map(|()| self.store.claim(key, request))?.await;
            let delay = self.claim_millis.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(delay.into())).await;
            answer
        })
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            hang(&self.renewals_hang).await;
            self.check().map(|()| self.store.renew(key, holder, lease))?.await
        })
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            hang(&self.completes_hang).await;
            self.check().map(|()| self.store.complete(key, holder, result, ttl))?.await
        })
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.check().map(|()| self.store.release(key, holder))?.await })
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.check().map(|()| self.store.resolve(key, result))?.await })
    }
}

pub(super) fn handle() -> (Arc<Breakable>, Idempotency) {
    let store = Arc::new(Breakable::default());
    (store.clone(), Idempotency::builder(store).lease(LEASE).build().unwrap())
}

/// CRD-2: the first call runs, a second one meanwhile is told, later ones get the result byte for byte, another body is
/// refused, and all of it converts into anyhow.
#[tokio::test]
async fn crd_2_the_second_caller_gets_the_first_ones_result() -> anyhow::Result<()> {
    let (_, idempotency) = handle();
    let order = key("order");
    let first = idempotency
        .once(&order, BODY, async |_| {
            let second: Once = idempotency.once(&order, BODY, async |_| panic!("it runs twice")).await;
            assert!(second.unwrap_err().retry_after().unwrap() <= LEASE);
            let other: Once = idempotency.once(&order, [9; 32], async |_| panic!("it runs twice")).await;
            assert!(matches!(other, Err(OnceError::Mismatch)));
            Ok::<_, io::Error>(vec![0, 255, 7])
        })
        .await?;
    assert_eq!((first.bytes(), first.is_replayed()), (&[0, 255, 7][..], false));
    let again: Once = idempotency.once(&order, BODY, async |_| panic!("it runs twice")).await;
    let again = again?;
    assert_eq!((again.bytes(), again.is_replayed()), (&[0, 255, 7][..], true));
    Ok(())
}

/// CRD-2. Trap "store down": a keyed call is refused, and its work is not started.
#[tokio::test]
async fn crd_2_without_the_store_nothing_runs() {
    let (store, idempotency) = handle();
    store.away.store(true, Ordering::Relaxed);
    let refused: Once = idempotency.once(&key("a"), BODY, async |_| panic!("it ran unprotected")).await;
    assert!(matches!(refused, Err(OnceError::Store(_))));
}

/// CRD-2. Trap "in-flight marker expires while the first still runs": work that takes many leases keeps its key.
#[tokio::test(start_paused = true)]
async fn crd_2_long_work_keeps_its_key() {
    let (_, idempotency) = handle();
    let slow = async |_| {
        for _ in 0..20 {
            tokio::time::sleep(LEASE / 2).await;
            let second: Once = idempotency.once(&key("a"), BODY, async |_| panic!("it runs twice")).await;
            assert!(matches!(second, Err(OnceError::InFlight { .. })));
        }
        Ok::<_, io::Error>(b"slow".to_vec())
    };
    assert_eq!(idempotency.once(&key("a"), BODY, slow).await.unwrap().bytes(), b"slow");
}

/// CRD-2: an executor that can't renew its lease is cancelled before another one may begin.
#[tokio::test(start_paused = true)]
async fn crd_2_work_is_cancelled_before_its_lease_ends() {
    let (store, idempotency) = handle();
    let (clock, began) = (Clock::default(), Clock::default().now());
    let hangs = async |_| {
        store.away.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
        Ok::<_, io::Error>(Vec::new())
    };
    let lost = idempotency.once(&key("a"), BODY, hangs).await;
    assert!(matches!(lost, Err(OnceError::Lost)), "{lost:?}");
    assert!(clock.now().since(began) < LEASE, "another executor may have begun");
    assert!(clock.now().since(began) > LEASE / 2, "one failed renewal cancels the work");
}

/// A clock that is ahead of the others.
#[derive(Default)]
struct Ahead(AtomicU64);

impl Time for Ahead {
    fn now(&self) -> Tick {
        Clock::default().precise() + Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn wall(&self) -> SystemTime {
        Clock::default().wall()
    }

    fn sleep_until(&self, _: Tick) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// CRD-2: an executor that lost its key without a chance to learn of it can't replace the result of its successor.
#[tokio::test(start_paused = true)]
async fn crd_2_a_late_executor_changes_nothing() {
    let ahead = Arc::new(Ahead::default());
    let store = MemoryIdempotency::with_clock(Clock::custom(ahead.clone()));
    let idempotency = Idempotency::builder(Arc::new(store)).lease(LEASE).build().unwrap();
    let tokens = std::sync::Mutex::new(Vec::new());
    let late = idempotency
        .once(&key("a"), BODY, async |first| {
            // For the store the lease has ended, and for the executor it has not.
            ahead.0.store(LEASE.as_millis() as u64 + 1, Ordering::Relaxed);
            let second = async |second: seawall_dist::idempotency::Execution| {
                tokens.lock().unwrap().extend([first.fencing_token, second.fencing_token]);
                Ok::<_, io::Error>(b"second".to_vec())
            };
            idempotency.once(&key("a"), BODY, second).await.unwrap();
            Ok::<_, io::Error>(b"late".to_vec())
        })
        .await;
    assert!(matches!(late, Err(OnceError::NotRecorded { error: None, .. })), "{late:?}");
    let stored: Once = idempotency.once(&key("a"), BODY, async |_| panic!("it runs thrice")).await;
    assert_eq!(stored.unwrap().bytes(), b"second");
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens[0] < tokens[1], "PRM-5: the fencing token did not grow: {tokens:?}");
}

/// CRD-2. Trap "only 2xx stored": a failure frees the key, is stored, or blocks the key, as the caller says.
#[tokio::test]
async fn crd_2_a_failure_frees_stores_or_blocks() {
    let (_, idempotency) = handle();
    let runs = AtomicU32::new(0);
    let fails = async |_| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err::<Vec<u8>, _>(io::Error::other("no"))
    };
    for _ in 0..2 {
        let failed = idempotency.once(&key("free"), BODY, fails).await;
        assert!(matches!(failed, Err(OnceError::Failed { recorded: true, .. })));
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2, "a failure that is not stored runs again");
    let store = |_: &io::Error| FailureAction::Store(b"409".to_vec());
    assert!(matches!(
        idempotency.once_or(&key("store"), BODY, fails, store).await,
        Err(OnceError::Failed { recorded: true, .. })
    ));
    let again = idempotency.once_or(&key("store"), BODY, fails, store).await;
    assert!(matches!(again, Err(OnceError::StoredFailure(bytes)) if bytes == b"409"));
    let block = |_: &io::Error| FailureAction::Block;
    assert!(idempotency.once_or(&key("block"), BODY, fails, block).await.is_err());
    let again = idempotency.once_or(&key("block"), BODY, fails, block).await;
    assert!(matches!(again, Err(OnceError::Unknown)));
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    assert!(idempotency.resolve(&key("block"), Some(b"found".to_vec())).await.unwrap());
    assert!(!idempotency.resolve(&key("block"), None).await.unwrap(), "it is resolved");
    let found = idempotency.once(&key("block"), BODY, fails).await.unwrap();
    assert_eq!((found.bytes(), found.is_replayed()), (&b"found"[..], true));
}

/// CRD-2. Trap "size cap": a result that is too large is not stored, and the work does not run again.
#[tokio::test]
async fn crd_2_a_result_that_is_too_large_is_not_run_again() {
    let store = Arc::new(MemoryIdempotency::new());
    let idempotency = Idempotency::builder(store).result_bytes_max(3).build().unwrap();
    let large = idempotency.once(&key("a"), BODY, async |_| Ok::<_, io::Error>(vec![1; 4])).await;
    assert!(matches!(large, Err(OnceError::TooLarge { bytes, limit: 3 }) if bytes == [1; 4]));
    let again: Once = idempotency.once(&key("a"), BODY, async |_| panic!("it runs twice")).await;
    assert!(matches!(again, Err(OnceError::Unknown)));
}

/// CRD-2: a store that comes back in time has the result, and one that does not is told of.
#[tokio::test(start_paused = true)]
async fn crd_2_a_result_is_stored_when_the_store_comes_back() {
    let (store, idempotency) = handle();
    let work = async |_| {
        store.away.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>(b"done".to_vec())
    };
    let back = async {
        tokio::time::sleep(LEASE / 3).await;
        store.away.store(false, Ordering::Relaxed);
    };
    let first = key("a");
    let (done, ()) = tokio::join!(idempotency.once(&first, BODY, work), back);
    assert_eq!(done.unwrap().bytes(), b"done");
    let lost = idempotency.once(&key("b"), BODY, work).await;
    assert!(matches!(lost, Err(OnceError::NotRecorded { bytes, error: Some(_) }) if bytes == b"done"));
}

/// CRD-2. Trap "concatenation ambiguity": parts of a fingerprint don't run together.
#[test]
fn crd_2_parts_of_a_fingerprint_do_not_run_together() {
    let of = |parts: &[&str]| fingerprint(parts.iter().map(|part| part.as_bytes()));
    assert_ne!(of(&["a:b", "c"]), of(&["a", "b:c"]));
    assert_ne!(of(&["ab"]), of(&["a", "b"]));
    assert_ne!(of(&["a"]), of(&["a", ""]));
    assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
}

/// CRD-2: settings and keys that can't work are refused.
#[test]
fn crd_2_settings_that_cannot_work_are_refused() {
    let builder = || Idempotency::builder(Arc::new(MemoryIdempotency::new()));
    let error = builder().lease(Duration::from_millis(9)).ttl(Duration::from_millis(1)).build().unwrap_err();
    assert_eq!(error.problems().len(), 2, "{error}");
    for (scope, text) in [("a", ""), ("a", "b\n"), ("\0", "b"), ("a", &"x".repeat(256))] {
        assert!(IdempotencyKey::new(scope, text).is_err(), "{scope:?} {text:?}");
    }
}
