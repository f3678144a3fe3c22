//! A second attempt for the one that takes too long.

use std::cell::RefCell;

use seawall::breaker::State;
use seawall::event::Events;
use seawall::{
    Attempt, Backoff, Breaker, Budget, Bulkhead, Fault, Guard, GuardBuilder, Hedge, Kind, Retry, Safety,
    fault, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, drop_at_every_poll, run};

fn guard(hands: &ManualClock, builder: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter());
    let hedged =
        Guard::builder("peer").clock(hands.clock()).seed(1).retry(retry).hedge(Hedge::after(millis(100)));
    builder(hedged).build().unwrap()
}

fn names(events: &mut Events) -> Vec<&'static str> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.what.name()).collect()
}

/// Makes a hedged call, and says how it ended and how long it took.
fn call(hands: &ManualClock, guard: &Guard, steps: &[Step]) -> (Result<(), Kind>, usize, u128) {
    let (script, began) = (Script::new(hands, steps.iter().copied()), hands.now());
    let result = run(hands, guard.idempotent().hedged().call(|attempt| script.attempt(attempt)));
    assert_eq!((script.under_way(), hands.sleepers_waiting()), (0, 0), "the loser is gone");
    (result.map_err(|error| error.kind()), script.attempts(), hands.now().since(began).as_millis())
}

/// ENG-9: the second attempt answers for a slow first one; a quick one is not hedged; the first may still win.
#[test]
fn eng_9_the_first_good_answer_wins() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    assert_eq!(call(&hands, &guard, &[Step::OkAfter(millis(50))]), (Ok(()), 1, 50));
    assert_eq!(call(&hands, &guard, &[Step::Hang, Step::OkAfter(millis(20))]), (Ok(()), 2, 120));
    assert_eq!(call(&hands, &guard, &[Step::OkAfter(millis(150)), Step::Hang]), (Ok(()), 2, 150));
    let hedger = guard.hedger().unwrap();
    assert_eq!((hedger.started(), hedger.won()), (2, 1));
}

/// ENG-9: a failure of one waits for the other; if both fail, the error is that of the first with its retries.
#[test]
fn eng_9_one_failure_waits_for_the_other() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    let slow_failure = Step::FailAfter(millis(150), Fault::system());
    assert_eq!(call(&hands, &guard, &[slow_failure, Step::OkAfter(millis(200))]), (Ok(()), 2, 300));
    assert_eq!(
        call(&hands, &guard, &[Step::OkAfter(millis(150)), Step::Fail(Fault::io())]),
        (Ok(()), 2, 150)
    );
    let both = [slow_failure, Step::FailAfter(millis(200), Fault::system())];
    assert_eq!(call(&hands, &guard, &both), (Err(Kind::Failed), 2, 300));
    assert_eq!(
        call(&hands, &guard, &[Step::Fail(Fault::io()), Step::Ok]),
        (Ok(()), 2, 10),
        "a quick failure is retried"
    );
}

/// ENG-9: only for operations that may run twice, and both attempts carry one key.
#[test]
fn eng_9_what_must_not_run_twice_is_not_hedged() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.attempt_timeout(secs(1)));
    let script = Script::new(&hands, [Step::Hang, Step::Ok]);
    let once = guard.classify(fault::Causes).safety(Safety::Once).hedged();
    assert!(run(&hands, once.call(|attempt| script.attempt(attempt))).is_err());
    assert_eq!(script.attempts(), 1);
    let keys = RefCell::new(Vec::new());
    let operation = async |attempt: Attempt| {
        keys.borrow_mut().push(attempt.key());
        if keys.borrow().len() == 1 { std::future::pending().await } else { Ok::<_, Fault>(()) }
    };
    run(&hands, guard.keyed().hedged().call(operation)).unwrap();
    assert!(matches!(&keys.borrow()[..], [first, second] if first == second));
}

/// ENG-9, ENG-4, PRM-6: hedges draw from the retry budget, and never more than there is.
#[test]
fn prm_6_hedges_stay_within_the_budget() {
    let hands = ManualClock::new();
    let budget = Budget::share_of_calls(10).floor_per_second(0.0);
    let guard = guard(&hands, |b| b.retry(Retry::max_attempts(3).budget(budget)));
    let mut second_attempts = 0;
    for _ in 0..200 {
        let (result, attempts, _) = call(&hands, &guard, &[Step::OkAfter(millis(101)), Step::Hang]);
        assert!(result.is_ok());
        second_attempts += attempts - 1;
    }
    assert!((5..=20).contains(&second_attempts), "{second_attempts} of 200");
    assert_eq!(guard.hedger().unwrap().started(), second_attempts as u64);
}

/// ENG-9, ENG-5: a superseded loser is never a failure, however long it had run; each has a ticket and a place of its own.
#[test]
fn eng_9_a_loser_is_not_held_against_the_peer() {
    let hands = ManualClock::new();
    let breaker = Breaker::consecutive_failures(1).abandoned_after(millis(1));
    let guard = guard(&hands, |b| b.breaker(breaker.clone()).bulkhead(Bulkhead::max_calls(2)));
    for _ in 0..10 {
        assert_eq!(call(&hands, &guard, &[Step::Hang, Step::OkAfter(secs(5))]).0, Ok(()));
        assert_eq!(call(&hands, &guard, &[Step::OkAfter(secs(5)), Step::Hang]).0, Ok(()));
    }
    assert_eq!((guard.breaker().unwrap().state(), guard.bulkhead().unwrap().inside()), (State::Closed, 0));
    let narrow = self::guard(&hands, |b| b.bulkhead(Bulkhead::max_calls(1)));
    assert_eq!(
        call(&hands, &narrow, &[Step::OkAfter(millis(150)), Step::Ok]),
        (Ok(()), 1, 150),
        "no place for a second"
    );
}

/// PRM-4, ENG-9: dropped at any poll, both are gone.
#[test]
fn prm_4_a_hedged_call_dropped_at_any_poll_leaves_nothing() {
    let polls = drop_at_every_poll(
        || {
            let hands = ManualClock::new();
            let guard = guard(&hands, |b| {
                b.breaker(Breaker::consecutive_failures(9)).bulkhead(Bulkhead::max_calls(2))
            });
            let steps = [
                Step::FailAfter(millis(150), Fault::io()),
                Step::OkAfter(millis(400)),
                Step::OkAfter(millis(50)),
            ];
            (Script::new(&hands, steps), guard, hands)
        },
        |(script, guard, _)| {
            Box::pin(async {
                guard.idempotent().hedged().call(|attempt| script.attempt(attempt)).await.unwrap();
            })
        },
        |(.., hands)| {
            hands.advance_to_next();
        },
        |(script, guard, hands), dropped| {
            assert_eq!((script.under_way(), hands.sleepers_waiting()), (0, 0), "{dropped:?}");
            assert_eq!(
                (guard.bulkhead().unwrap().inside(), guard.breaker().unwrap().probes_under_way()),
                (0, 0)
            );
        },
    );
    assert!(polls >= 4, "{polls} polls");
}

/// ENG-2, ENG-9: the second attempt has what is left of the call's time, and the end of that is told once.
#[test]
fn eng_9_a_hedged_call_ends_by_its_call_timeout() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.no_retry().call_timeout(secs(1)).hedge(Hedge::after(millis(900))));
    let mut events = guard.subscribe(100);
    let (script, began) = (Script::new(&hands, [Step::Hang, Step::Hang]), hands.now());
    let error = run(&hands, guard.idempotent().hedged().call(|attempt| script.attempt(attempt))).unwrap_err();
    assert_eq!(error.kind(), Kind::TimedOut);
    assert_eq!(hands.now().since(began), secs(1));
    let told = names(&mut events);
    assert_eq!(told.iter().filter(|name| **name == "timed_out").count(), 1, "{told:?}");
}

/// ENG-13: a call whose first attempt fails and whose second answers has succeeded, and nothing else is told of it.
#[test]
fn eng_13_a_call_that_its_hedge_answers_has_succeeded() {
    let hands = ManualClock::new();
    let guard = guard(&hands, GuardBuilder::no_retry);
    let mut events = guard.subscribe(100);
    let steps = [Step::FailAfter(millis(150), Fault::business()), Step::OkAfter(millis(200))];
    let script = Script::new(&hands, steps);
    run(&hands, guard.idempotent().hedged().call(|attempt| script.attempt(attempt))).unwrap();
    assert_eq!(
        names(&mut events),
        ["started", "attempt", "hedged", "attempt", "failed", "hedge_won", "succeeded"]
    );
}

/// ENG-9: a quick 503 beside a slow answer is not what the caller waits for.
#[test]
fn eng_9_an_answer_that_is_judged_a_fault_wins_no_race() {
    let hands = ManualClock::new();
    let guard = guard(&hands, GuardBuilder::no_retry);
    let mut events = guard.subscribe(100);
    let judge = |result: &Result<u32, Fault>| match result {
        Ok(503) => Fault::of_http(503),
        Ok(_) => None,
        Err(fault) => Some(*fault),
    };
    let answers = |first: Step, second: Step| {
        let script = Script::new(&hands, [first, second]);
        let call = guard.idempotent().classify(judge).hedged().call(|attempt| {
            let answer = script.attempt(attempt);
            async { Ok::<_, Fault>(if answer.await.is_ok() { 200 } else { 503 }) }
        });
        run(&hands, call).unwrap()
    };
    let bad = |after| Step::FailAfter(millis(after), Fault::io());
    assert_eq!(answers(Step::OkAfter(millis(400)), bad(50)), 200);
    let told = names(&mut events);
    assert!(!told.contains(&"hedge_won"), "{told:?}");
    assert_eq!(answers(bad(150), Step::OkAfter(millis(100))), 200);
    assert_eq!(names(&mut events).last(), Some(&"succeeded"));
    assert_eq!(answers(bad(150), bad(100)), 503);
    assert_eq!(names(&mut events).last(), Some(&"given_up"));
}
