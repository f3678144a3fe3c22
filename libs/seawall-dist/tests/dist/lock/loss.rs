use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use seawall::{Tick, millis, secs};
use seawall_dist::lock::{Lease, LockError, LossReason};
use seawall_testkit::{ManualClock, poll_once, run};

use super::support::{Behaviour, DropTime, KEY, ScriptedLocks, builder, is_free, sleep};

/// Work that never ends by itself; answers with the error, when the work was dropped, and when the last lease would have
/// ended.
fn lose(
    renewals: &[Behaviour],
    work_is_told: bool,
) -> (LockError, Tick, Tick, ManualClock, Arc<ScriptedLocks>) {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    store.renewals.lock().unwrap().extend(renewals);
    let locks = builder(&clock, &store).build().unwrap();
    let (dropped, valid_until) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Tick::ZERO)));
    let error = run(&clock, async {
        let work = |lease: Lease| {
            let guard = DropTime(clock.clone(), dropped.clone());
            let valid_until = valid_until.clone();
            let clock = &clock;
            async move {
                let _guard = guard;
                loop {
                    *valid_until.lock().unwrap() = lease.valid_until();
                    sleep(clock, millis(10)).await;
                }
            }
        };
        locks.with_lock(KEY, work).await.unwrap_err()
    });
    let dropped = dropped.lock().unwrap().expect("the work was dropped");
    let valid_until = *valid_until.lock().unwrap();
    assert!(!work_is_told || dropped < valid_until, "the work ran longer than its lease");
    (error, dropped, valid_until, clock, store)
}

/// CRD-1: with the store unreachable the work is cancelled before the lease ends: a lease counts from the start of the last
/// request that succeeded.
#[test]
fn crd_1_work_is_cancelled_before_the_lease_ends_when_the_store_is_away() {
    use Behaviour::{Fails, Hangs, Slow, Works};
    for script in [
        vec![Fails],
        vec![Hangs],
        vec![Works, Works, Fails],
        vec![Works, Slow(millis(250)), Hangs],
        vec![Fails, Works, Hangs],
        vec![Slow(millis(320)), Slow(millis(320)), Slow(millis(320)), Fails],
    ] {
        let (error, dropped, valid_until, _, _) = lose(&script, true);
        assert!(matches!(error, LockError::Lost { reason: LossReason::NotRenewed, .. }), "{error}");
        let left = valid_until.since(dropped);
        assert!((millis(90)..=millis(120)).contains(&left), "{script:?} left {left:?}");
    }
}

/// CRD-1: one failed renewal costs nothing: a third of the lease leaves room for the next.
#[test]
fn crd_1_a_failed_renewal_is_repeated_in_time() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let script = [Behaviour::Fails, Behaviour::Works, Behaviour::Hangs, Behaviour::Works];
    store.renewals.lock().unwrap().extend(script.repeat(3));
    let locks = builder(&clock, &store).build().unwrap();
    let work = |_| sleep(&clock, secs(4));
    run(&clock, locks.with_lock(KEY, work)).unwrap();
}

/// CRD-1: the start of a renewal counts, and not its end: the store may have begun to count at once.
#[test]
fn crd_1_validity_counts_from_the_start_of_a_renewal() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    store.renewals.lock().unwrap().push_back(Behaviour::Slow(millis(200)));
    let locks = builder(&clock, &store).build().unwrap();
    let begun = clock.now();
    let valid_until = run(
        &clock,
        locks.with_lock(KEY, |lease| {
            let clock = &clock;
            async move {
                sleep(clock, millis(600)).await;
                lease.valid_until()
            }
        }),
    );
    // One lease after the first renewal started, at a third of the first; the clocks differ by less than the drift.
    let expected = millis(333) + secs(1) - millis(12);
    let valid = valid_until.unwrap().since(begun);
    assert!(valid.abs_diff(expected) < millis(1), "{valid:?}, not {expected:?}");
}

/// CRD-1: a lock that belongs to somebody else is lost at once.
#[test]
fn crd_1_a_lock_that_was_taken_over_is_lost_at_once() {
    let (error, dropped, valid_until, _, _) = lose(&[Behaviour::Refuses], true);
    assert!(matches!(error, LockError::Lost { reason: LossReason::TakenOver, .. }), "{error}");
    assert!(valid_until.since(dropped) > millis(600));
}

/// CRD-1: after the longest hold the work is cancelled, however well the lock is renewed.
#[test]
fn crd_1_the_longest_hold_ends_the_work() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).max_hold(secs(3)).build().unwrap();
    let begun = clock.now();
    let error = run(&clock, locks.with_lock(KEY, |_| std::future::pending::<()>())).unwrap_err();
    assert!(matches!(error, LockError::HeldTooLong { .. }), "{error}");
    assert_eq!(clock.now().since(begun), secs(3));
}

/// CRD-1: work whose process was suspended past its lease does not take another step.
#[test]
fn crd_1_work_that_slept_over_its_lease_is_not_polled_again() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    let polls = AtomicU32::new(0);
    let work = |_| {
        std::future::poll_fn(|cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            cx.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
    };
    let mut call = Box::pin(locks.with_lock(KEY, work));
    for _ in 0..5 {
        assert!(poll_once(call.as_mut()).is_pending());
    }
    assert_eq!(polls.load(Ordering::Relaxed), 5);
    // The renewal was due long ago, and succeeds now: for the store the lease is over, or not yet.
    clock.advance(secs(10));
    let std::task::Poll::Ready(Err(error)) = poll_once(call.as_mut()) else { panic!("it goes on") };
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_eq!(polls.load(Ordering::Relaxed), 5, "the work went on without a lock");
}

/// CRD-1: whoever waits for the loss learns of it before the lease ends, also if nobody polls the work.
#[test]
fn crd_1_a_loss_is_told_although_nobody_polls_the_work() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).build().unwrap();
    let told = Arc::new(Mutex::new(None));
    let mut call = Box::pin(locks.with_lock(KEY, |lease| {
        *told.lock().unwrap() = Some(lease);
        std::future::pending::<()>()
    }));
    assert!(poll_once(call.as_mut()).is_pending());
    let lease = told.lock().unwrap().take().unwrap();
    let begun = clock.now();
    assert_eq!(run(&clock, lease.lost()), LossReason::NotRenewed);
    assert!(clock.now() < lease.valid_until() && clock.now().since(begun) > millis(800));
}

/// CRD-1: a grant whose answer came when its lease had nearly ended does not count, and is given back.
#[tokio::test]
async fn crd_1_a_grant_that_comes_too_late_does_not_count() {
    let clock = ManualClock::new();
    let store = ScriptedLocks::new(&clock);
    let locks = builder(&clock, &store).wait(seawall_dist::lock::Wait::ONCE).build().unwrap();
    for slow in [millis(1_500), secs(100)] {
        store.acquires.lock().unwrap().push_back(Behaviour::Slow(slow));
        let error = run(&clock, locks.with_lock(KEY, |_| async { panic!("it ran") })).unwrap_err();
        assert!(matches!(error, LockError::Store { .. } | LockError::GrantedTooLate { .. }), "{error}");
        assert!(error.fault().is_transient());
        store.acquires.lock().unwrap().clear();
        // The request is brought to its end by a task, which gives back what it took.
        for _ in 0..60 {
            tokio::task::yield_now().await;
            clock.advance(millis(100));
        }
        assert!(is_free(&*store).await);
        let last = *store.requests().iter().rev().nth(2).unwrap();
        assert_eq!(last, "release", "{:?}", store.requests());
    }
}
