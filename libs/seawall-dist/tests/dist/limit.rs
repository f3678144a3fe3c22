//! CRD-8: a rate limit that several processes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use seawall::Fault;
use seawall_dist::limit::{
    BucketRules, DecidedBy, LimitAnswer, LimitError, LimitStore, MemoryLimits, SharedLimit, WhenAway,
};
use seawall_dist::{StoreError, StoreFuture};
use seawall_testkit::conformance;

/// CRD-8: the suite of limits is green on memory.
#[tokio::test]
async fn crd_8_memory_is_a_store_of_limits() {
    conformance::limit(Arc::new(MemoryLimits::default())).await;
}

/// A store that reads and writes in two steps, as `GET` and then `SET` would.
#[derive(Default)]
struct TwoSteps(AtomicU64);

impl LimitStore for TwoSteps {
    fn take<'a>(
        &'a self,
        _: &'a str,
        rules: BucketRules,
        calls: u32,
        _: Duration,
    ) -> StoreFuture<'a, LimitAnswer> {
        Box::pin(async move {
            let spent = self.0.load(Ordering::SeqCst) + u64::from(calls) * rules.interval;
            tokio::task::yield_now().await;
            if spent > rules.burst {
                return Ok(LimitAnswer::Refused { retry_after: Duration::from_secs(1) });
            }
            self.0.store(spent, Ordering::SeqCst);
            Ok(LimitAnswer::Admitted { wait: Duration::ZERO, at: SystemTime::UNIX_EPOCH })
        })
    }

    fn give_back<'a>(&'a self, _: &'a str, _: BucketRules, _: u32) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// CRD-8: the suite is red on a store whose decision is not one step.
#[tokio::test]
#[should_panic(expected = "not exactly the burst passed at once")]
async fn crd_8_a_limit_in_two_steps_is_found() {
    conformance::limit(Arc::new(TwoSteps::default())).await;
}

/// A store that can be away or hang.
#[derive(Default)]
struct Breakable {
    limits: MemoryLimits,
    away: AtomicBool,
    hangs: AtomicBool,
    asked: AtomicU64,
}

impl LimitStore for Breakable {
    fn take<'a>(
        &'a self,
        name: &'a str,
        rules: BucketRules,
        calls: u32,
        max_wait: Duration,
    ) -> StoreFuture<'a, LimitAnswer> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            if self.away.load(Ordering::Relaxed) {
                return Err(StoreError::new("asking a shared limit", Fault::unreachable(), "away"));
            }
            self.limits.take(name, rules, calls, max_wait).await
        })
    }

    fn give_back<'a>(&'a self, name: &'a str, rules: BucketRules, calls: u32) -> StoreFuture<'a, ()> {
        self.limits.give_back(name, rules, calls)
    }
}

/// CRD-8: while the store is away the process limits its calls to its share, asks the store only now and then, and goes back
/// by itself.
#[tokio::test(start_paused = true)]
async fn crd_8_the_local_limit_stands_in_and_the_shared_one_comes_back() {
    let store = Arc::new(Breakable::default());
    let limit = SharedLimit::builder(store.clone(), "sms", 30).burst(30).processes(3).build().unwrap();
    assert_eq!(limit.try_acquire().await.unwrap().decided_by(), DecidedBy::Shared);
    store.away.store(true, Ordering::Relaxed);
    let (mut passed, mut refused) = (0, None);
    for _ in 0..100 {
        match limit.try_acquire().await {
            Ok(admission) => {
                assert_eq!((admission.decided_by(), admission.store_time()), (DecidedBy::Local, None));
                passed += 1;
            }
            Err(error) => refused = Some(error),
        }
    }
    assert_eq!(passed, 9, "a third of the burst of 30, and one call was spent before");
    assert!(limit.is_local());
    assert!(matches!(refused, Some(LimitError::Exceeded { decided_by: DecidedBy::Local, .. })));
    assert_eq!(store.asked.load(Ordering::Relaxed), 2, "a store that is away is asked by every call");
    store.away.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(501)).await;
    assert_eq!(limit.try_acquire().await.unwrap().decided_by(), DecidedBy::Shared);
    assert!(!limit.is_local());
}

/// CRD-8: while the store is away, calls that fit into the shared limit but not into that of this process are told when to come
/// back, and not that they never fit.
#[tokio::test(start_paused = true)]
async fn crd_8_calls_that_only_the_shared_limit_can_take_wait_for_the_store() {
    let store = Arc::new(Breakable::default());
    let limit = SharedLimit::builder(store.clone(), "sms", 9).processes(3).build().unwrap();
    store.away.store(true, Ordering::Relaxed);
    for refused in [limit.try_acquire_many(6).await.unwrap_err(), limit.acquire_many(6).await.unwrap_err()] {
        assert!(matches!(refused, LimitError::StoreAway { .. }), "{refused:?}");
        let wait = refused.retry_after().unwrap();
        assert!(!wait.is_zero() && wait <= Duration::from_millis(500), "{wait:?}");
    }
    store.away.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(501)).await;
    assert_eq!(limit.acquire_many(6).await.unwrap().decided_by(), DecidedBy::Shared);
}

/// CRD-8: a store that hangs holds a call up for less than a second.
#[tokio::test(start_paused = true)]
async fn crd_8_a_store_that_hangs_is_left_within_a_second() {
    let store = Arc::new(Breakable::default());
    let limit = SharedLimit::builder(store.clone(), "sms", 100).build().unwrap();
    store.hangs.store(true, Ordering::Relaxed);
    let call = tokio::time::timeout(Duration::from_secs(1), limit.try_acquire());
    assert_eq!(call.await.unwrap().unwrap().decided_by(), DecidedBy::Local);
    let strict = SharedLimit::builder(store, "sms", 100).when_away(WhenAway::Refuse).build().unwrap();
    let call = tokio::time::timeout(Duration::from_secs(1), strict.try_acquire());
    assert!(matches!(call.await.unwrap(), Err(LimitError::StoreAway { .. })));
}

/// CRD-8, PRM-4: a call that is dropped before its turn gives the turn back.
#[tokio::test(start_paused = true)]
async fn prm_4_a_turn_that_is_dropped_is_given_back() {
    let store = Arc::new(MemoryLimits::default());
    let limit = SharedLimit::builder(store, "turns", 1).burst(1).max_wait(Duration::from_secs(5)).build();
    let limit = limit.unwrap();
    limit.acquire().await.unwrap();
    for _ in 0..20 {
        let dropped = tokio::time::timeout(Duration::from_millis(1), limit.acquire()).await;
        assert!(dropped.is_err(), "the burst is spent");
        tokio::task::yield_now().await;
    }
    // Twenty lost turns would be twenty seconds.
    let next = tokio::time::timeout(Duration::from_millis(1_100), limit.acquire()).await;
    assert!(next.expect("the turns were given back").is_ok());
}

/// CRD-8: settings that can't work are refused, and calls that never fit are told so.
#[tokio::test]
async fn crd_8_limits_that_cannot_work_are_refused() {
    let builder = || SharedLimit::builder(Arc::new(MemoryLimits::default()), "sms", 10);
    let wrong = [
        SharedLimit::builder(Arc::new(MemoryLimits::default()), "sms", 0).build(),
        SharedLimit::builder(Arc::new(MemoryLimits::default()), "", 1).build(),
        builder().processes(0).build(),
        builder().store_timeout(Duration::from_secs(2)).build(),
        builder().max_wait(Duration::from_secs(61)).build(),
        SharedLimit::builder(Arc::new(MemoryLimits::default()), "sms", 2_000_000).build(),
    ];
    assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
    let limit = builder().burst(5).build().unwrap();
    assert_eq!(limit.try_acquire_many(6).await, Err(LimitError::NeverFits { calls: 6, burst: 5 }));
    assert!(limit.try_acquire_many(0).await.unwrap_err().retry_after().is_none());
}
