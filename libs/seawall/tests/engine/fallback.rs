//! Something to answer with when there is no answer.

use std::cell::{Cell, RefCell};
use std::task::Poll;

use seawall::fallback::{FallbackFilter, LastGood};
use seawall::{Backoff, Breaker, Class, Error, Fault, Guard, Kind, Retry, millis, secs};
use seawall_testkit::{ManualClock, Script, Step, drop_at_every_poll, poll_once, run};

fn guard(hands: &ManualClock) -> Guard {
    Guard::builder("peer")
        .clock(hands.clock())
        .seed(1)
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(2).backoff(Backoff::constant(millis(10)).no_jitter()))
        .breaker(Breaker::consecutive_failures(100))
        .build()
        .unwrap()
}

async fn fail(fault: Fault) -> Result<u32, Fault> {
    Err(fault)
}

/// ENG-10: a value, and the result says that it is a fallback.
#[test]
fn eng_10_a_value_stands_in_and_says_so() {
    let hands = ManualClock::new();
    let guard = guard(&hands);
    let answer = run(&hands, guard.idempotent().or_value(7).call(|_| fail(Fault::io()))).unwrap();
    assert!(answer.is_fallback());
    assert_eq!((*answer, answer.instead_of().unwrap().kind()), (7, Kind::Exhausted));
    let real = run(&hands, guard.idempotent().or_value(7).call(async |_| Ok::<_, Fault>(1))).unwrap();
    assert!(!real.is_fallback() && real.into_value() == 1);
}

/// ENG-10: a function of the error; business faults have no fallback unless that is asked for.
#[test]
fn eng_10_only_chosen_failures_have_a_fallback() {
    let hands = ManualClock::new();
    let guard = guard(&hands);
    let attempts = |error: &Error<Fault>| error.attempts();
    let call = |when: Option<FallbackFilter>, fault: Fault| {
        let request = guard.idempotent().or_else(attempts);
        let request = if let Some(when) = when { request.when(when) } else { request };
        run(&hands, request.call(move |_| fail(fault))).ok().map(|answer| *answer)
    };
    assert_eq!(call(None, Fault::io()), Some(2));
    assert_eq!(call(None, Fault::business()), None, "the peer's word stands");
    assert_eq!(call(Some(FallbackFilter::classes([Class::Business])), Fault::business()), Some(1));
    assert_eq!(call(Some(FallbackFilter::classes([Class::Timeout])), Fault::io()), None);
    assert_eq!(call(Some(FallbackFilter::rejections()), Fault::io()), None);
    guard.breaker().unwrap().force_open("down");
    assert_eq!(call(Some(FallbackFilter::rejections()), Fault::io()), Some(0));
    assert_eq!(
        call(Some(FallbackFilter::classes([Class::Io])), Fault::io()),
        None,
        "a rejection is no fault of the peer"
    );
    assert_eq!(call(Some(FallbackFilter::classes([Class::Io]).or_rejections()), Fault::io()), Some(0));
    assert_eq!(call(None, Fault::io()), Some(0));
}

/// ENG-10: the last good value; nothing yet is no fallback, and a fallback is not remembered.
#[test]
fn eng_10_the_last_good_value_stands_in() {
    let hands = ManualClock::new();
    let (guard, last) = (guard(&hands), LastGood::new());
    let call = |result: Result<u32, Fault>| {
        run(&hands, guard.idempotent().or_last_good(&last).call(move |_| std::future::ready(result)))
    };
    assert!(call(Err(Fault::io())).is_err(), "nothing yet");
    assert_eq!(*call(Ok(5)).unwrap(), 5);
    assert_eq!(*call(Err(Fault::io())).unwrap(), 5);
    assert_eq!(*call(Ok(6)).unwrap(), 6);
    assert_eq!((*call(Err(Fault::io())).unwrap(), last.get()), (6, Some(6)));
}

/// ENG-10: another guard; if it fails too, the error is the first one.
#[test]
fn eng_10_another_guard_is_asked() {
    let hands = ManualClock::new();
    let (first, second) = (guard(&hands), guard(&hands));
    let ask = |result: Result<u32, Fault>| {
        let other = |_: &Error<Fault>| second.idempotent().call(move |_| std::future::ready(result));
        run(&hands, first.idempotent().or_ask(other).call(|_| fail(Fault::timeout())))
    };
    let answer = ask(Ok(9)).unwrap();
    assert!(answer.is_fallback() && *answer == 9);
    assert_eq!(ask(Err(Fault::business())).unwrap_err().last_fault(), Fault::timeout());
}

/// ENG-10: before the fallback, a dead-letter place sees what was given up: attempts spent, budget denied, out of time.
#[test]
fn eng_10_what_was_given_up_goes_to_the_dead_letters_first() {
    let hands = ManualClock::new();
    let guard = guard(&hands);
    let order = RefCell::new(Vec::new());
    let call = |fault: Fault| {
        let sink = |error: &Error<Fault>| order.borrow_mut().push(format!("{:?}", error.kind()));
        let fallback = |_: &Error<Fault>| {
            order.borrow_mut().push("fallback".into());
            0
        };
        let _ =
            run(&hands, guard.idempotent().or_else(fallback).dead_letter(sink).call(move |_| fail(fault)));
        order.take()
    };
    assert_eq!(call(Fault::io()), ["Exhausted", "fallback"]);
    assert_eq!(call(Fault::business()), [""; 0], "an answer is no dead letter");
    assert_eq!(call(Fault::system()), ["fallback"], "nor is what is never retried");
    guard.breaker().unwrap().force_open("down");
    assert_eq!(call(Fault::io()), ["fallback"], "nor is what was never sent");
    let hung = Guard::builder("hung").clock(hands.clock()).call_timeout(secs(1)).build().unwrap();
    let seen = Cell::new(None);
    let sink = |error: &Error<Fault>| seen.set(Some(error.kind()));
    let call = hung
        .idempotent()
        .or_value(1)
        .dead_letter(sink)
        .call(|_| std::future::pending::<Result<u32, Fault>>());
    assert_eq!((*run(&hands, call).unwrap(), seen.get()), (1, Some(Kind::TimedOut)));
}

/// PRM-4, ENG-10: a call with a fallback, dropped at any poll, leaves nothing behind.
#[test]
fn prm_4_a_call_with_a_fallback_dropped_at_any_poll_leaves_nothing() {
    let polls = drop_at_every_poll(
        || {
            let hands = ManualClock::new();
            (guard(&hands), guard(&hands), hands)
        },
        |(first, second, _)| {
            Box::pin(async {
                let other = |_: &Error<Fault>| {
                    second.idempotent().call(|attempt| async move {
                        tokio::task::yield_now().await;
                        if attempt.number() == 1 { Err(Fault::io()) } else { Ok(3) }
                    })
                };
                let hang = |_| std::future::pending::<Result<u32, Fault>>();
                assert_eq!(*first.idempotent().or_ask(other).call(hang).await.unwrap(), 3);
            })
        },
        |(.., hands)| {
            hands.advance_to_next();
        },
        |(.., hands), dropped| assert_eq!(hands.sleepers_waiting(), 0, "{dropped:?}"),
    );
    assert!(polls >= 6, "{polls} polls");
}

/// ENG-10: a guard can say for which failures its fallbacks stand in; a call that says otherwise wins.
#[tokio::test(start_paused = true)]
async fn eng_10_the_guard_says_when_and_the_call_may_say_otherwise() {
    let guard =
        Guard::builder("picky").no_retry().fallback_when(FallbackFilter::rejections()).build().unwrap();
    let failing = |_| async { Err::<u32, _>(std::io::Error::other("down")) };
    assert!(guard.idempotent().or_value(7).call(failing).await.is_err());
    let answer = guard.idempotent().or_value(7).when(FallbackFilter::default()).call(failing).await.unwrap();
    assert!(answer.is_fallback());
}

/// ENG-10, ENG-12: a call under way keeps the fallback that it began with, like all its settings.
#[test]
fn eng_12_a_call_under_way_keeps_its_fallback() {
    let hands = ManualClock::new();
    let make = |when| Guard::builder("peer").no_retry().fallback_when(when);
    let guard = make(FallbackFilter::default()).clock(hands.clock()).build().unwrap();
    let script = Script::new(&hands, [Step::FailAfter(secs(1), Fault::io())]);
    let call = guard.idempotent().or_value(()).call(|attempt| script.attempt(attempt));
    let mut call = std::pin::pin!(call);
    assert!(poll_once(call.as_mut()).is_pending());
    guard.reconfigure(make(FallbackFilter::rejections())).unwrap();
    hands.advance(secs(2));
    assert!(matches!(poll_once(call.as_mut()), Poll::Ready(Ok(answer)) if answer.is_fallback()));
}
