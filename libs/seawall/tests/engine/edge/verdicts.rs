//! Fallback, last good, failover and dead letter go by the verdict, not by `Ok`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use seawall::failover::{Failover, Side};
use seawall::fallback::{FallbackFilter, LastGood, LastGoodMap};
use seawall::{Attempt, Backoff, Breaker, Error, Fault, Guard, Kind, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

type Status = Result<u16, Fault>;

fn by_status(result: &Status) -> Option<Fault> {
    match result {
        Ok(status) => Fault::of_http(*status),
        Err(fault) => Some(*fault),
    }
}

fn guard(hands: &ManualClock, attempts: u32) -> Guard {
    let retry = Retry::max_attempts(attempts).backoff(Backoff::constant(millis(10))).no_budget();
    Guard::builder("peer").clock(hands.clock()).retry(retry).build().unwrap()
}

/// For blocking code, in which nobody moves a clock by hand.
fn at_once(attempts: u32) -> Guard {
    let retry = Retry::max_attempts(attempts).backoff(Backoff::constant(Duration::ZERO)).no_budget();
    Guard::builder("peer").retry(retry).build().unwrap()
}

fn says(status: u16) -> impl FnMut(Attempt) -> std::future::Ready<Status> {
    move |_| std::future::ready(Ok(status))
}

/// ENG-16, ENG-10: a 500 never overwrites the last good value, and the last good value stands in for it.
#[test]
fn eng_16_a_wrong_answer_is_never_the_last_good_one() {
    let hands = ManualClock::new();
    let (guard, last) = (guard(&hands, 1), LastGood::new());
    let call =
        |status| run(&hands, guard.idempotent().classify(by_status).or_last_good(&last).call(says(status)));
    assert_eq!((*call(200).unwrap(), last.get()), (200, Some(200)));
    let stale = call(500).unwrap();
    assert_eq!((stale.is_fallback(), *stale, last.get()), (true, 200, Some(200)));
    assert_eq!(stale.instead_of().unwrap().last_fault(), Fault::of_http(500).unwrap());
    let missing = call(404).unwrap();
    assert_eq!(
        (missing.is_fallback(), *missing, last.get()),
        (false, 404, Some(200)),
        "business is an answer"
    );
    assert_eq!(missing.fault(), Fault::of_http(404));
}

/// ENG-16, ENG-10: a fallback stands in for an answer that was judged a fault, and without one the answer comes back.
#[test]
fn eng_16_a_fallback_replaces_a_wrong_answer() {
    let hands = ManualClock::new();
    let guard = guard(&hands, 2);
    let request = || guard.idempotent().classify(by_status);
    let answer = run(&hands, request().or_value(299).call(says(503))).unwrap();
    assert_eq!((*answer, answer.is_fallback()), (299, true));
    let error = answer.instead_of().unwrap();
    assert_eq!((error.kind(), error.attempts(), error.guard()), (Kind::Exhausted, 2, "peer"));
    assert_eq!(run(&hands, request().call(says(503))).unwrap(), 503);
    let only = request().or_value(299).when(FallbackFilter::rejections());
    let answer = run(&hands, only.call(says(503))).unwrap();
    assert_eq!((*answer, answer.is_fallback(), answer.fault()), (503, false, Fault::of_http(503)));
    assert_eq!(
        *at_once(2).idempotent().classify(by_status).or_value(299).run(|_| Ok(503)).unwrap(),
        299,
        "in blocking code too"
    );
}

/// ENG-16, ENG-10: what was given up with a wrong answer goes to the dead-letter place, with and without a fallback.
#[test]
fn eng_16_a_wrong_answer_that_was_given_up_is_a_dead_letter() {
    let hands = ManualClock::new();
    let guard = guard(&hands, 2);
    let letters = RefCell::new(Vec::new());
    let keep = |error: &Error<Fault>| letters.borrow_mut().push((error.kind(), error.attempts()));
    let request = || guard.idempotent().classify(by_status);
    assert_eq!(run(&hands, request().dead_letter(keep).call(says(503))).unwrap(), 503);
    assert_eq!(*run(&hands, request().dead_letter(keep).or_value(1).call(says(503))).unwrap(), 1);
    assert_eq!(run(&hands, request().dead_letter(keep).call(says(404))).unwrap(), 404);
    assert_eq!(at_once(2).idempotent().classify(by_status).dead_letter(keep).run(|_| Ok(503)).unwrap(), 503);
    assert_eq!(letters.into_inner(), [(Kind::Exhausted, 2); 3]);
}

/// ENG-16, ENG-14: `Ok(503)` of the primary is not served: the secondary is asked.
#[test]
fn eng_16_failover_judges_answers() {
    let hands = ManualClock::new();
    let side = |name: &str| {
        Guard::builder(name).clock(hands.clock()).breaker(Breaker::default()).no_retry().build().unwrap()
    };
    let pair = Failover::new(side("eu"), side("us")).unwrap();
    let ask = |primary: u16, secondary: u16| {
        let statuses = [primary, secondary];
        let operation = |attempt: Attempt| std::future::ready(Status::Ok(statuses[attempt.side().index()]));
        run(&hands, pair.idempotent().classify(by_status).call(operation))
    };
    let served = ask(503, 200).unwrap();
    assert_eq!((*served, served.side(), served.fault()), (200, Side::SECONDARY, None));
    let business = ask(404, 200).unwrap();
    assert_eq!((*business, business.side()), (404, Side::PRIMARY), "the other side would say the same");
    let both = ask(503, 500).unwrap();
    assert_eq!((*both, both.fault()), (500, Fault::of_http(500)), "the last answer comes back");
}

/// ENG-16: an answer whose retry is refused comes back, as the page says.
#[test]
fn eng_16_an_answer_is_not_lost_when_its_retry_is_refused() {
    let hands = ManualClock::new();
    let retry = || Retry::max_attempts(3).backoff(Backoff::constant(secs(1)).no_jitter()).no_budget();
    let builder = || Guard::builder("peer").clock(hands.clock()).retry(retry());
    // The circuit opens by the first answer, and refuses the second attempt.
    let opens = builder().breaker(Breaker::consecutive_failures(1)).build().unwrap();
    let request = || opens.idempotent().classify(by_status);
    assert_eq!(run(&hands, request().call(says(500))), Ok(500));
    opens.breaker().unwrap().reset("test");
    let answer =
        run(&hands, request().or_value(1).when(FallbackFilter::classes([])).call(says(500))).unwrap();
    assert_eq!((*answer, answer.fault()), (500, Fault::of_http(500)));
    // The call's time is over before the next attempt.
    let short = builder().call_timeout(millis(1_500)).build().unwrap();
    let slow = Cell::new(0);
    let operation = |_: Attempt| {
        slow.set(slow.get() + 1);
        std::future::ready(Status::Ok(503))
    };
    assert_eq!(run(&hands, short.idempotent().classify(by_status).call(operation)), Ok(503));
    // An attempt that hangs after it has no answer of its own.
    let attempts = Cell::new(0);
    let operation = |_: Attempt| {
        attempts.set(attempts.get() + 1);
        let hangs = attempts.get() > 1;
        async move { if hangs { std::future::pending().await } else { Status::Ok(500) } }
    };
    let hanging = builder().call_timeout(secs(5)).attempt_timeout(secs(2)).build().unwrap();
    let result = run(&hands, hanging.idempotent().classify(by_status).call(operation));
    assert!(matches!(result, Err(error) if error.kind() == Kind::TimedOut));
}

/// ENG-10: the last good value per key is bounded, and the oldest goes.
#[test]
fn eng_10_the_last_good_value_per_key_is_bounded() {
    let last = LastGoodMap::new(3);
    (0..10).for_each(|key| last.set(key, key * 10));
    assert_eq!((last.len(), last.get(&6), last.get(&7), last.get(&9)), (3, None, Some(70), Some(90)));
    last.set(7, 71);
    last.set(10, 100);
    assert_eq!(
        (last.get(&7), last.get(&8), last.len()),
        (Some(71), None, 3),
        "what was renewed is young again"
    );
    let hands = ManualClock::new();
    let (guard, last) = (guard(&hands, 1), LastGoodMap::new(10));
    let call = |key, status| {
        let request = guard.idempotent().classify(by_status).or_last_good(last.entry(key));
        run(&hands, request.call(says(status))).map(|answer| (*answer, answer.is_fallback()))
    };
    assert_eq!(call("a", 200), Ok((200, false)));
    assert_eq!(call("b", 201), Ok((201, false)));
    assert_eq!(call("a", 503), Ok((200, true)));
    assert_eq!(call("b", 503), Ok((201, true)));
    assert_eq!(call("c", 503), Ok((503, false)), "nothing was good yet");
}

/// ENG-10: a last good value that is too old is no answer any more, and says how old it is.
#[test]
fn eng_10_a_last_good_value_has_an_age() {
    let hands = ManualClock::new();
    let guard = guard(&hands, 1);
    let last = LastGood::new().max_age(secs(60)).clock(hands.clock());
    let by_key = LastGoodMap::new(10).max_age(secs(60)).clock(hands.clock());
    let call = |status| {
        let request =
            guard.idempotent().classify(by_status).or_last_good(&last).or_last_good(by_key.entry("a"));
        run(&hands, request.call(says(status))).map(|answer| *answer)
    };
    assert_eq!((last.age(), by_key.age("a"), call(200)), (None, None, Ok(200)));
    hands.advance(secs(60));
    assert_eq!((last.age(), by_key.age("a"), call(503)), (Some(secs(60)), Some(secs(60)), Ok(200)));
    hands.advance(secs(1));
    assert_eq!((last.get(), by_key.get("a"), call(503)), (None, None, Ok(503)));
    assert_eq!((call(201), call(503)), (Ok(201), Ok(201)));
}
