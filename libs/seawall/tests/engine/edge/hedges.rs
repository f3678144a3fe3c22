//! Hedges: what they cost, what they say, and how many there are.

use std::cell::Cell;
use std::future::pending;

use seawall::breaker::State;
use seawall::{Attempt, Breaker, Fault, Guard, GuardBuilder, Hedge, Kind, Ran, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

fn guard(hands: &ManualClock, make: impl FnOnce(GuardBuilder) -> GuardBuilder) -> Guard {
    make(Guard::builder("replicas").clock(hands.clock()).no_retry()).build().unwrap()
}

/// ENG-9: after a hedge the error tells of both attempts.
#[test]
fn eng_9_the_error_of_a_hedged_call_is_over_all_attempts() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.attempt_timeout(secs(1)).hedge(Hedge::after(millis(100))));
    let sleeper = hands.clone();
    let operation = |attempt: Attempt| {
        let sleeper = sleeper.clone();
        async move {
            if attempt.hedge() == 0 {
                sleep(&sleeper, millis(150)).await;
                Err::<u32, _>(Fault::unreachable())
            } else {
                pending().await
            }
        }
    };
    let error = run(&hands, guard.idempotent().hedged().call(operation)).unwrap_err();
    assert_eq!((error.attempts(), error.ran()), (2, Ran::Unknown), "the second may have run");
    assert_eq!(error.last_fault(), Fault::unreachable(), "the error is that of the first");
}

async fn sleep(hands: &ManualClock, time: std::time::Duration) {
    seawall::Time::sleep_until(hands, hands.now() + time).await;
}

/// ENG-9, ENG-4: hedges are paid from the budget whether the guard retries or not.
#[test]
fn eng_9_hedges_of_a_guard_without_retry_have_a_budget() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.hedge(Hedge::after(millis(10))));
    let sent = Cell::new(0);
    for _ in 0..1_000 {
        let operation = |_: Attempt| {
            sent.set(sent.get() + 1);
            let hands = hands.clone();
            async move {
                sleep(&hands, millis(20)).await;
                Ok::<u32, Fault>(1)
            }
        };
        run(&hands, guard.idempotent().hedged().call(operation)).unwrap();
    }
    assert!(sent.get() <= 1_110, "{} sends for 1000 calls", sent.get());
    assert!(sent.get() >= 1_050, "{} sends for 1000 calls", sent.get());
    assert!(guard.budget().unwrap().denied() > 0);
}

/// ENG-9: up to N hedges, each a delay after the one before; the first good answer wins.
#[test]
fn eng_9_there_are_at_most_as_many_hedges_as_asked_for() {
    for hedges in 1..=4 {
        let hands = ManualClock::new();
        let guard = guard(&hands, |b| {
            b.hedge(Hedge::after(millis(100)).max_hedges(hedges)).retry(Retry::max_attempts(2).no_budget())
        });
        let (started, began) = (Cell::new(0), hands.now());
        let operation = |attempt: Attempt| {
            started.set(started.get() + 1);
            assert_eq!(hands.now().since(began), millis(100) * attempt.hedge());
            let answers = attempt.hedge() == hedges;
            async move { if answers { Ok::<u32, Fault>(attempt.hedge()) } else { pending().await } }
        };
        assert_eq!(run(&hands, guard.idempotent().hedged().call(operation)), Ok(hedges));
        assert_eq!((started.get(), guard.hedger().unwrap().started()), (hedges + 1, u64::from(hedges)));
        assert_eq!(guard.hedger().unwrap().won(), 1);
    }
    let wrong = Guard::builder("many").hedge(Hedge::after(millis(1)).max_hedges(11)).build().unwrap_err();
    assert!(wrong.to_string().contains("hedge.max_hedges: 11 is not between 1 and 10"), "{wrong}");
}

/// ENG-9: losers are no mark against the peer, however many there are.
#[test]
fn eng_9_superseded_hedges_are_no_failures() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| {
        b.hedge(Hedge::after(millis(600)).max_hedges(3))
            .attempt_timeout(secs(60))
            .breaker(Breaker::consecutive_failures(1).abandoned_after(millis(1)))
            .retry(Retry::max_attempts(2).no_budget())
    });
    for _ in 0..50 {
        let operation = |attempt: Attempt| async move {
            if attempt.hedge() == 2 { Ok::<u32, Fault>(7) } else { pending().await }
        };
        assert_eq!(run(&hands, guard.idempotent().hedged().call(operation)), Ok(7));
    }
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
}

/// ENG-9, ENG-10: a hedge, a fallback and the last good value together.
#[test]
fn eng_9_a_hedged_call_that_fails_falls_back() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| {
        b.attempt_timeout(millis(50)).call_timeout(secs(1)).hedge(Hedge::after(millis(10)))
    });
    let last = seawall::fallback::LastGood::new();
    let request = || guard.idempotent().hedged().or_last_good(&last).or_value(0);
    let hang = |_: Attempt| pending::<Result<u32, Fault>>();
    let answer = run(&hands, request().call(hang)).unwrap();
    assert_eq!((*answer, answer.is_fallback()), (0, true));
    let error = answer.instead_of().unwrap();
    assert_eq!((error.kind(), error.attempts(), error.ran()), (Kind::TimedOut, 2, Ran::Unknown));
    assert_eq!(*run(&hands, request().call(|_| async { Ok::<u32, Fault>(9) })).unwrap(), 9);
    assert_eq!(*run(&hands, request().call(hang)).unwrap(), 9, "the last good value comes first");
}
