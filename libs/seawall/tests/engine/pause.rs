//! A process that was stopped, and what it charges its peers with.

use std::sync::Arc;
use std::time::Duration;

use seawall::breaker::State;
use seawall::{Attempt, Breaker, Guard, Kind, millis, secs};
use tokio::sync::Notify;
use tokio::task::JoinSet;

fn guard(tolerance: Option<Duration>) -> Guard {
    let builder = Guard::builder("peer")
        .attempt_timeout(secs(30))
        .no_call_timeout()
        .no_retry()
        .breaker(Breaker::consecutive_failures(3));
    let builder = if let Some(tolerance) = tolerance { builder.pause_tolerance(tolerance) } else { builder };
    builder.build().unwrap()
}

/// Calls that wait for this bell, under way.
async fn waiting(guard: &Guard, bell: &Arc<Notify>) -> JoinSet<Result<u32, seawall::Error<std::io::Error>>> {
    let mut calls = JoinSet::new();
    for _ in 0..10 {
        let (guard, bell) = (guard.clone(), bell.clone());
        calls.spawn(async move {
            let answer = async |_: Attempt| {
                bell.notified().await;
                Ok(7)
            };
            guard.call(answer).await
        });
    }
    tokio::time::sleep(millis(1)).await;
    calls
}

/// ENG-7. Trap "SIGSTOP for a minute opens no circuit": timeouts that the process itself has missed are not counted; those of a
/// peer that hangs while the process runs are.
#[tokio::test(start_paused = true)]
async fn eng_7_a_pause_of_the_process_opens_no_circuit_and_a_peer_that_hangs_does() {
    let (guard, bell) = (guard(Some(secs(1))), Arc::default());
    let mut calls = waiting(&guard, &bell).await;
    // All timers are 32 s late: that is how it looks after a pause.
    tokio::time::advance(secs(62)).await;
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap().unwrap_err().kind(), Kind::TimedOut);
    }
    let breaker = guard.breaker().unwrap();
    assert_eq!(breaker.state(), State::Closed, "{:?}", breaker.counts());

    let mut calls = waiting(&guard, &bell).await;
    while calls.join_next().await.is_some() {}
    assert_eq!(breaker.state(), State::Open, "these have hung while the process ran");
}

/// ENG-7: an answer that came during the pause is read, although its time was over.
#[tokio::test(start_paused = true)]
async fn eng_7_an_answer_that_came_during_a_pause_is_read() {
    let (guard, bell) = (guard(Some(secs(1))), Arc::new(Notify::new()));
    let mut calls = waiting(&guard, &bell).await;
    tokio::time::advance(secs(62)).await;
    // Another task has it, and has to run first.
    tokio::time::sleep(millis(5)).await;
    bell.notify_waiters();
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap().unwrap(), 7);
    }
}

/// ENG-7, the counterpart: whoever does not ask for it has every timeout counted.
#[tokio::test(start_paused = true)]
async fn eng_7_without_a_tolerance_every_timeout_counts() {
    let (guard, bell) = (guard(None), Arc::default());
    let mut calls = waiting(&guard, &bell).await;
    tokio::time::advance(secs(62)).await;
    while calls.join_next().await.is_some() {}
    assert_eq!(guard.breaker().unwrap().state(), State::Open);
}

/// ENG-7: a call timeout is no other: it is not counted either after a pause.
#[tokio::test(start_paused = true)]
async fn eng_7_a_call_timeout_that_was_missed_is_not_counted() {
    let guard = Guard::builder("peer")
        .call_timeout(secs(30))
        .no_retry()
        .breaker(Breaker::consecutive_failures(1).abandoned_after(secs(1)))
        .pause_tolerance(secs(1))
        .build()
        .unwrap();
    let mut calls = waiting(&guard, &Arc::default()).await;
    tokio::time::advance(secs(62)).await;
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap().unwrap_err().kind(), Kind::TimedOut);
    }
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
}
