use std::future::poll_fn;
use std::task::Poll;

use seawall::millis;
use seawall_dist::saga::NewSaga;

use super::bank::{ACCOUNTS, BALANCE, Bank};
use super::takeover::until_none_is_active;

/// Polls a future so many times, with a waker that wakes, and drops it. True if it had succeeded by then; on a busy machine it may
/// lose its lease instead.
async fn drop_after<T, E>(polls: usize, future: impl Future<Output = Result<T, E>>) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result.is_ok()),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// PRM-4: a transfer that is dropped at any poll is brought to its end by a monitor, and no connection or lock is left behind.
async fn a_transfer_may_be_dropped_at_every_poll(bank: Bank) {
    let sagas = bank.sagas(bank.store.clone(), millis(300)).monitor_concurrency(4).build().unwrap();
    let mut polls = 0;
    while !drop_after(polls, sagas.start(NewSaga::new("transfer", &format!("t{polls}"), "1 2 5 refuse")))
        .await
    {
        polls += 1;
    }
    let stop = tokio::sync::Notify::new();
    tokio::join!(sagas.run(stop.notified()), async {
        until_none_is_active(&bank).await;
        stop.notify_one();
    });
    println!("dropped after 0 to {polls} polls");
    assert!(polls > 10, "the future was dropped in few places only");
    assert_eq!(bank.balances().await, vec![BALANCE; ACCOUNTS as usize]);
    // Every connection is of use again.
    for _ in 0..10 {
        bank.store.count().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_4_a_transfer_may_be_dropped_at_every_poll_on_postgres() {
    a_transfer_may_be_dropped_at_every_poll(Bank::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_4_a_transfer_may_be_dropped_at_every_poll_on_sqlite() {
    a_transfer_may_be_dropped_at_every_poll(Bank::sqlite().await).await;
}
