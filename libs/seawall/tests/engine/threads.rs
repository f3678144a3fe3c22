//! One guard, many threads, real time.

use std::sync::atomic::{AtomicU64, Ordering};

use seawall::breaker::State;
use seawall::{Attempt, Backoff, Breaker, Budget, Clock, Fault, Guard, Kind, Retry, millis, secs};

/// ENG-4, ENG-5, PRM-3, PRM-4: eight threads share one guard while its backend fails, is refused and recovers, on the
/// machine's own clock. At rest everything is back, the budget was kept, and never was more than one probe under way.
#[test]
fn prm_4_many_threads_share_one_guard_through_an_outage() {
    let guard = Guard::builder("shared")
        .clock(Clock::system())
        .attempt_timeout(secs(5))
        .retry(
            Retry::max_attempts(3)
                .backoff(Backoff::constant(millis(1)))
                .budget(Budget::share_of_calls(10).floor_per_second(0.0)),
        )
        .breaker(Breaker::failure_rate(50).over_calls(50).minimum_calls(50).cooldown(millis(20)))
        .build()
        .unwrap();
    let (calls, sent, retried) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let rejected = AtomicU64::new(0);
    let healthy = |call: u64| !(20_000..60_000).contains(&call);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                runtime.block_on(async {
                    for _ in 0..10_000 {
                        let call = calls.fetch_add(1, Ordering::Relaxed);
                        let operation = async |attempt: Attempt| {
                            sent.fetch_add(1, Ordering::Relaxed);
                            retried.fetch_add(u64::from(attempt.number() > 1), Ordering::Relaxed);
                            assert!(guard.breaker().unwrap().probes_under_way() <= 1);
                            tokio::task::yield_now().await;
                            if healthy(call) { Ok(()) } else { Err(Fault::protocol()) }
                        };
                        if let Err(error) = guard.idempotent().call(operation).await {
                            rejected.fetch_add(u64::from(error.kind() == Kind::Rejected), Ordering::Relaxed);
                        }
                    }
                });
            });
        }
    });
    let (first_attempts, retries) =
        (sent.load(Ordering::Relaxed) - retried.load(Ordering::Relaxed), retried.into_inner());
    assert!(retries * 10 <= first_attempts, "{retries} retries for {first_attempts} calls");
    assert!(rejected.into_inner() > 1_000, "the circuit opened");
    let breaker = guard.breaker().unwrap();
    assert_eq!(breaker.probes_under_way(), 0);
    assert!(breaker.counts().opened >= 1, "{:?}", breaker.counts());
    // The backend is healthy again, so the circuit closes as soon as its cooldown is over.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        while breaker.state() != State::Closed {
            tokio::time::sleep(millis(5)).await;
            let _ = guard.call(async |_| Ok::<_, Fault>(())).await;
        }
    });
}
