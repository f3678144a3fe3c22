//! What a call costs in memory: nothing.

use allocation_counter::measure;
use seawall::breaker::Outcome;
use seawall::{Attempt, Breaker, Fault, Guard, Retry, secs};

fn whole(breaker: Breaker) -> Guard {
    Guard::builder("peer")
        .call_timeout(secs(10))
        .attempt_timeout(secs(3))
        .retry(Retry::max_attempts(3))
        .breaker(breaker)
        .build()
        .unwrap()
}

/// ENG-11: no allocation on the successful path, ready at once or suspending, and none on a rejection.
#[test]
fn eng_11_calls_and_rejections_do_not_allocate() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for breaker in [
        Breaker::default(),
        Breaker::failure_rate(50).over_calls(100),
        Breaker::failure_rate(50).over_time(secs(10)).slow_after(secs(1)).slow_rate(50),
    ] {
        let guard = whole(breaker);
        let calls = async |calls: u32| {
            for _ in 0..calls {
                guard.idempotent().call(async |_: Attempt| Ok::<_, Fault>(1)).await.unwrap();
                let suspending = async |_: Attempt| {
                    tokio::task::yield_now().await;
                    Ok::<_, Fault>(2)
                };
                guard.keyed().call(suspending).await.unwrap();
            }
        };
        runtime.block_on(async {
            // The first calls make what a thread keeps for itself.
            calls(10).await;
            let mut counted = std::pin::pin!(calls(1_000));
            let info = measure_future(counted.as_mut()).await;
            assert_eq!(info, 0, "allocations in 2 000 calls");
        });
        guard.breaker().unwrap().force_open("to be refused");
        let refused = measure(|| {
            let call = std::pin::pin!(guard.call(async |_: Attempt| Ok::<_, Fault>(1)));
            assert!(matches!(seawall_testkit::poll_once(call), std::task::Poll::Ready(Err(_))));
        });
        assert_eq!(refused.count_total, 0, "allocations in a rejection");
    }
    let breaker = Breaker::default().build().unwrap();
    let alone = measure(|| {
        breaker.admit().unwrap().finish(Outcome::Success);
        breaker.run(|_| Outcome::Success, || Ok::<_, Fault>(())).unwrap();
    });
    assert_eq!(alone.count_total, 0);
}

/// Counts the allocations of each poll of a future; what the runtime does in between is not ours.
async fn measure_future(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> u64 {
    let mut allocations = 0;
    std::future::poll_fn(|cx| {
        let mut polled = std::task::Poll::Pending;
        allocations += measure(|| polled = future.as_mut().poll(cx)).count_total;
        polled
    })
    .await;
    allocations
}
