use std::sync::Arc;

use seawall::{millis, secs};
use seawall_dist::lock::{Locks, MemoryLocks, Wait};
use seawall_testkit::{ManualClock, drop_at_every_poll};

use super::support::{KEY, ScriptedLocks, builder, is_free, sleep};

/// PRM-4: a call that is dropped at any poll gives its lock back: while it takes the lock, works, renews, or gives it back.
#[test]
fn prm_4_a_call_dropped_at_any_poll_leaks_no_lock() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    struct Scenario {
        clock: ManualClock,
        store: Arc<ScriptedLocks>,
        locks: Locks,
    }
    let make = || {
        let clock = ManualClock::new();
        let store = ScriptedLocks::new(&clock);
        for script in [&store.acquires, &store.renewals, &store.releases] {
            script.lock().unwrap().push_back(super::support::Behaviour::Slow(millis(20)));
        }
        let locks = builder(&clock, &store).build().unwrap();
        Scenario { clock, store, locks }
    };
    let _inside = runtime.enter();
    let polls = drop_at_every_poll(
        make,
        |scenario| {
            Box::pin(async {
                let work = |_| sleep(&scenario.clock, secs(1));
                scenario.locks.with_lock(KEY, work).await.unwrap();
            })
        },
        |scenario| {
            scenario.clock.advance_to_next();
        },
        |scenario, dropped| {
            // The releases that destructors handed to the runtime.
            runtime.block_on(async {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                    scenario.clock.advance(millis(10));
                }
            });
            for script in [&scenario.store.acquires, &scenario.store.renewals, &scenario.store.releases] {
                script.lock().unwrap().clear();
            }
            // A lease lasts a second: what is free now was given back.
            assert!(runtime.block_on(is_free(&*scenario.store)), "{dropped:?} left the lock behind");
        },
    );
    assert!(polls > 8, "{polls} polls are too few to be the whole story");
}

/// PRM-4: work that panics gives its lock back.
#[tokio::test]
async fn prm_4_work_that_panics_gives_its_lock_back() {
    let store = Arc::new(MemoryLocks::new());
    let locks = Locks::builder(store.clone()).wait(Wait::ONCE).build().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { locks.with_lock(KEY, |_| async { panic!("the work failed") }).await });
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    tokio::task::yield_now().await;
    assert!(is_free(&*store).await);
}

/// PRM-4: a call that is dropped while its runtime shuts down, or without one, does not panic.
#[test]
fn prm_4_a_call_dropped_with_its_runtime_does_not_panic() {
    let locks = Locks::new(Arc::new(MemoryLocks::new()));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let (inside, outside) = (locks.clone(), locks);
    runtime.spawn(async move { inside.with_lock(KEY, |_| std::future::pending::<()>()).await });
    let mut call = Box::pin(outside.with_lock("lock:order:create:buyer:1", |_| std::future::pending::<()>()));
    {
        let _inside = runtime.enter();
        let polled = seawall_testkit::poll_once(call.as_mut());
        assert!(polled.is_pending());
    }
    runtime.shutdown_timeout(secs(5));
    drop(call);
}
