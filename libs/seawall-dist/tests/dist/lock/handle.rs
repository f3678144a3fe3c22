use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use seawall::{millis, secs};
use seawall_dist::StoreFuture;
use seawall_dist::lock::{
    FencingSource, FencingToken, LEASE, LockError, LockKey, Locks, LossReason, MemoryLocks, Wait,
};
use seawall_testkit::{ManualClock, run};

use super::support::{Behaviour, KEY, ScriptedLocks, builder, is_free, sleep};

/// CRD-1: the lock is renewed every third of its lease while the work runs, given back after it, and never renewed again.
#[test]
fn crd_1_a_lock_is_renewed_every_third_of_its_lease_and_given_back() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    let output = run(&clock, async {
        let output = locks.with_lock(KEY, |lease| {
            let clock = &clock;
            async move {
                for _ in 0..100 {
                    sleep(clock, millis(100)).await;
                    assert!(lease.is_valid() && lease.remaining() > millis(500), "{lease:?}");
                }
                lease
            }
        });
        let lease = output.await.unwrap();
        assert!(is_free(&*store).await);
        sleep(&clock, secs(5)).await;
        lease
    });
    assert!(!output.is_valid() && output.remaining().is_zero());
    let renewals = store.times("renew");
    assert_eq!(renewals.len(), 30, "{renewals:?}");
    assert!(renewals.windows(2).all(|pair| pair[1] - pair[0] == secs(1) / 3), "{renewals:?}");
    assert!(renewals.last() < store.times("release").first(), "it was renewed after it was given back");
}

/// CRD-1: the output is that of the work, and errors convert with `?`.
#[tokio::test]
async fn crd_1_the_output_is_that_of_the_work() -> anyhow::Result<()> {
    let locks = Locks::new(Arc::new(MemoryLocks::new()));
    let number: u32 = locks.with_lock(KEY, |_| async { "42".parse() }).await??;
    assert_eq!(number, 42);
    let failed = locks.with_lock(KEY, |_| async { "x".parse::<u32>() }).await?;
    assert!(failed.context("a number").is_err());
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    is_send(locks.with_lock(KEY, |lease| async move { lease.fence() })).await?;
    let waits_for_ever = locks.key(KEY).max_hold(millis(20)).with(|lease| async move { lease.lost().await });
    assert!(matches!(is_send(waits_for_ever).await, Err(LockError::HeldTooLong { .. })));
    Ok(())
}

/// CRD-1: 32 attempts with a delay between 100 and 200 ms, then an error that says so; a store that fails counts too.
#[test]
fn crd_1_a_lock_that_is_held_is_tried_as_often_as_told() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    store.acquires.lock().unwrap().extend([Behaviour::Fails, Behaviour::Refuses]);
    let error = run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
    let LockError::Contended { attempts: 32, waited, .. } = error else { panic!("{error}") };
    let times = store.times("acquire");
    assert_eq!(times.len(), 32);
    let delays: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(delays.iter().all(|delay| (millis(100)..=millis(200)).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay != delays[0]), "there is no jitter");
    assert_eq!(waited, times[31]);
}

/// CRD-1: one attempt has a third of the lease, and five seconds at most: a store that hangs holds nobody up for 54 minutes
/// because the lease is an hour.
#[tokio::test]
async fn crd_1_one_attempt_has_a_bound() {
    for (lease, bound) in [(millis(300), millis(100)), (secs(9), secs(3)), (secs(3_600), secs(5))] {
        let clock = ManualClock::new();
        let store = ScriptedLocks::new(&clock);
        let locks = builder(&clock, &store).lease(lease).wait(Wait::ONCE).build().unwrap();
        store.acquires.lock().unwrap().push_back(Behaviour::Hangs);
        let begun = clock.now();
        let error = run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
        assert!(matches!(error, LockError::Store { .. }), "{error}");
        assert_eq!(clock.now().since(begun), bound, "with a lease of {lease:?}");
    }
}

/// CRD-1: with the default options the attempts wait for about five leases, while somebody else has the lock.
#[test]
fn crd_1_the_default_attempts_wait_for_about_five_leases() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    store.acquires.lock().unwrap().push_back(Behaviour::Refuses);
    let begun = clock.now();
    run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
    let waited = clock.now().since(begun);
    assert!((LEASE * 4..LEASE * 6).contains(&waited), "{waited:?}");
}

/// CRD-1: a store that refuses the statement, for a right that is missing, would refuse it 31 times more.
#[test]
fn crd_1_a_fault_that_is_not_transient_is_not_repeated() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    store.acquires.lock().unwrap().extend([Behaviour::Refuses, Behaviour::Denies]);
    let error = run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
    assert!(matches!(error, LockError::Store { .. }) && !error.fault().is_transient(), "{error}");
    assert_eq!(store.times("acquire").len(), 2);
}

/// CRD-1: who waits until locked tries every 50 ms, but a store that fails ends the wait.
#[test]
fn crd_1_waiting_until_locked_is_for_contention_only() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).wait(Wait::UntilLocked).build().unwrap();
    let mut script = vec![Behaviour::Refuses; 500];
    script.push(Behaviour::Works);
    store.acquires.lock().unwrap().extend(script);
    run(&clock, locks.with_lock(KEY, |_| async {})).unwrap();
    let times = store.times("acquire");
    assert_eq!(times.len(), 501);
    assert!(times.windows(2).all(|pair| (millis(25)..=millis(50)).contains(&(pair[1] - pair[0]))));
    *store.acquires.lock().unwrap() = [Behaviour::Refuses, Behaviour::Fails].into();
    let error = run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
    assert!(matches!(error, LockError::Store { .. }), "{error}");
    assert_eq!(store.times("acquire").len(), 503);
}

/// CRD-1: nested work under the same lock runs at once with the same token, and asks the store nothing.
#[test]
fn crd_1_a_lock_is_re_entrant_within_one_task() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    run(&clock, async {
        let outer = locks.with_lock(KEY, |outer| {
            let (locks, clock) = (&locks, &clock);
            async move {
                let handle = locks.clone();
                let inner = handle.with_lock(KEY, |inner| async move {
                    sleep(clock, secs(2)).await;
                    inner.fence()
                });
                let other =
                    locks.with_lock("lock:order:create:buyer:457", |other| async move { other.fence() });
                assert_eq!(inner.await.unwrap(), outer.fence());
                assert_ne!(other.await.unwrap(), outer.fence());
                assert!(outer.is_valid(), "the inner work gave the outer lock back");
            }
        });
        outer.await.unwrap();
        // After it, not inside of it.
        locks.with_lock(KEY, |_| async {}).await.unwrap();
    });
    assert_eq!(store.requests().iter().filter(|name| **name == "acquire").count(), 3);
    assert_eq!(store.requests().iter().filter(|name| **name == "release").count(), 3);
}

/// CRD-1: two tasks are two holders; a task that was started in the scope of a lease is the same holder, and ends with it.
#[tokio::test]
async fn crd_1_a_task_inherits_a_lock_only_by_its_scope() {
    let locks = Locks::builder(Arc::new(MemoryLocks::new())).wait(Wait::ONCE).build().unwrap();
    let outer = locks.clone();
    let orphan = locks
        .with_lock(KEY, |lease| async move {
            let mut tasks = tokio::task::JoinSet::new();
            let stranger = outer.clone();
            tasks.spawn(async move { stranger.with_lock(KEY, |_| async {}).await.is_err() });
            assert!(tasks.join_next().await.unwrap().unwrap(), "a task of its own had the lock");
            let child = outer.clone();
            let fence = lease.fence();
            let part = lease.scope(async move {
                child.with_lock(KEY, |inner| async move { inner.fence() }).await.unwrap() == fence
            });
            tasks.spawn(async move { part.await.unwrap() });
            assert!(tasks.join_next().await.unwrap().unwrap());
            let mut orphans = tokio::task::JoinSet::new();
            orphans.spawn(lease.scope(std::future::pending::<()>()));
            tokio::task::yield_now().await;
            orphans
        })
        .await;
    let error = orphan.unwrap().join_next().await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, LockError::Lost { reason: LossReason::Released, .. }), "{error}");
}

/// CRD-1: a release that hangs keeps the caller for its limit and not longer, and the work's output is not lost.
#[test]
fn crd_1_a_release_has_a_time_limit_of_its_own() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    store.releases.lock().unwrap().push_back(Behaviour::Hangs);
    let begun = clock.now();
    assert_eq!(run(&clock, locks.with_lock(KEY, |_| async { 7 })).unwrap(), 7);
    assert_eq!(clock.now().since(begun), secs(5));
    assert!(store.times("renew").is_empty(), "it was renewed while it was given back");
}

/// CRD-1: options that can't work are refused by name, for all locks and for one.
#[test]
fn crd_1_options_that_cannot_work_are_refused() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let with_lease = |lease| {
        builder(&clock, &store).lease(lease).build().map_err(|error| error.problems()[0].path().to_owned())
    };
    assert_eq!(with_lease(millis(10)).unwrap_err(), "lease");
    assert_eq!(with_lease(secs(4_000)).unwrap_err(), "lease");
    assert_eq!(
        builder(&clock, &store).max_hold(secs(0)).build().unwrap_err().problems()[0].path(),
        "max_hold"
    );
    let locks = builder(&clock, &store).build().unwrap();
    let error = run(&clock, locks.key(KEY).release_limit(secs(0)).with(|_| async {})).unwrap_err();
    assert!(error.to_string().contains("release_limit: it is zero"), "{error}");
    assert!(store.requests().is_empty());
}

struct Tickets(AtomicU32);

impl FencingSource for Tickets {
    fn next_token<'a>(&'a self, _: &'a LockKey) -> StoreFuture<'a, FencingToken> {
        let next = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(FencingToken::new(i64::from(next))) })
    }
}

/// CRD-1: where the store of the lock can't promise its tokens, they come from elsewhere.
#[tokio::test]
async fn crd_1_tokens_may_come_from_another_source() {
    let source = Arc::new(Tickets(AtomicU32::new(700)));
    let locks = Locks::builder(Arc::new(MemoryLocks::new())).fencing(source).build().unwrap();
    for expected in 700..703 {
        assert_eq!(
            locks.with_lock(KEY, |lease| async move { lease.fence().as_i64() }).await.unwrap(),
            expected
        );
    }
}
