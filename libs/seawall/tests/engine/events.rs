//! What guards tell of themselves.

use std::collections::BTreeSet;
use std::task::Poll;

use seawall::breaker::{Outcome, State};
use seawall::event::{EventKind, Events};
use seawall::{
    Backoff, Breaker, Budget, Bulkhead, Fault, Guard, GuardBuilder, Hedge, Policy, RateLimit, Registry,
    Retry, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};

fn guard(hands: &ManualClock, build: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter());
    build(Guard::builder("peer").clock(hands.clock()).seed(1).retry(retry)).build().unwrap()
}

/// Makes one call, and says what was told of it.
fn told(hands: &ManualClock, guard: &Guard, events: &mut Events, steps: &[Step]) -> Vec<String> {
    let script = Script::new(hands, steps.iter().copied());
    let request = guard.idempotent().operation("charge").about("order 7");
    let _ = run(hands, request.call(|attempt| script.attempt(attempt)));
    texts(events)
}

fn texts(events: &mut Events) -> Vec<String> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.to_string()).collect()
}

fn names(events: &mut Events) -> Vec<&'static str> {
    std::iter::from_fn(|| events.try_next()).map(|event| event.what.name()).collect()
}

/// ENG-13: a call tells its whole story, with the operation and what it was about.
#[test]
fn eng_13_a_call_tells_its_story() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.attempt_timeout(secs(1)));
    let mut events = guard.subscribe(100);
    assert_eq!(
        told(&hands, &guard, &mut events, &[Step::FailAfter(millis(5), Fault::io()), Step::Hang, Step::Ok]),
        [
            "peer charge order 7: started",
            "peer charge order 7: attempt 1",
            "peer charge order 7: attempt 1 failed after 5ms: i/o fault",
            "peer charge order 7: attempt 2 follows in 10ms: i/o fault",
            "peer charge order 7: attempt 2",
            "peer charge order 7: out of time by the attempt timeout",
            "peer charge order 7: attempt 2 failed after 1s: timeout",
            "peer charge order 7: attempt 3 follows in 10ms: timeout",
            "peer charge order 7: attempt 3",
            "peer charge order 7: succeeded after 1s and 3 attempts",
        ]
    );
    let all_fail = [Step::Fail(Fault::io()); 3];
    let last = told(&hands, &guard, &mut events, &all_fail).pop().unwrap();
    assert_eq!(last, "peer charge order 7: given up by the retry after 20ms and 3 attempts: i/o fault");
}

/// ENG-13: what policies decide is told: rejections with their reason, the circuit's moves, the spent budget.
#[test]
fn eng_13_policies_tell_what_they_decide() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| {
        let budget = Budget::share_of_calls(0).floor_per_second(0.12);
        let retry = Retry::max_attempts(2).backoff(Backoff::constant(millis(10)).no_jitter()).budget(budget);
        b.retry(retry).breaker(Breaker::consecutive_failures(3).cooldown(secs(30)))
    });
    let mut events = guard.subscribe(100);
    let failing = [Step::Fail(Fault::io()); 2];
    told(&hands, &guard, &mut events, &failing);
    let denied = told(&hands, &guard, &mut events, &failing);
    assert_eq!(
        denied[2..],
        [
            "peer charge order 7: attempt 1 failed after 0s: i/o fault",
            "peer: circuit opened for 30s",
            "peer charge order 7: not retried, the budget is spent: i/o fault",
            "peer charge order 7: given up by the retry budget after 0s and 1 attempt: i/o fault",
        ]
    );
    let refused = told(&hands, &guard, &mut events, &[]);
    assert!(
        refused[1].starts_with("peer charge order 7: rejected by the breaker, come back in 30s"),
        "{refused:?}"
    );
    hands.advance(secs(31));
    assert_eq!(
        told(&hands, &guard, &mut events, &[Step::Ok]),
        [
            "peer charge order 7: started",
            "peer: circuit half-open",
            "peer charge order 7: attempt 1",
            "peer: circuit closed",
            "peer charge order 7: succeeded after 0s and 1 attempt",
        ]
    );
    guard.breaker().unwrap().force_open("maintenance");
    guard.breaker().unwrap().disable("an experiment");
    guard.breaker().unwrap().reset("over");
    assert_eq!(
        texts(&mut events),
        ["peer: circuit forced open", "peer: circuit bypassed", "peer: circuit closed"]
    );
}

/// ENG-13: a slow answer, a late one, an abandoned call and a panic are told as what they are.
#[test]
fn eng_13_slow_late_abandoned_and_panicked_are_told_apart() {
    let hands = ManualClock::new();
    let slow = Breaker::failure_rate(50).over_calls(10).slow_after(secs(1)).slow_rate(100);
    let guard = guard(&hands, |b| b.no_retry().no_call_timeout().breaker(slow.clone()));
    let mut events = guard.subscribe(100);
    told(&hands, &guard, &mut events, &[Step::OkAfter(secs(2))])
        .iter()
        .find(|text| **text == "peer: slow: 2s")
        .unwrap();

    let script = Script::new(&hands, [Step::Hang, Step::Hang]);
    let late = guard.breaker().unwrap().admit().unwrap();
    {
        let mut call = std::pin::pin!(guard.call(|attempt| script.attempt(attempt)));
        assert!(poll_once(call.as_mut()).is_pending());
        hands.advance(millis(300));
    }
    assert_eq!(names(&mut events), ["started", "attempt", "abandoned"]);
    guard.breaker().unwrap().reset("forget");
    guard.breaker().unwrap().force_open("now");
    late.finish(Outcome::Success);
    assert_eq!(names(&mut events), ["opened", "late"]);
    guard.breaker().unwrap().reset("again");
    names(&mut events);

    let panicking = Script::new(&hands, [Step::Panic]);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(&hands, guard.call(|attempt| panicking.attempt(attempt)))
    }));
    assert!(unwound.is_err());
    assert_eq!(names(&mut events), ["started", "attempt", "panicked", "abandoned"]);
}

/// ENG-9, ENG-10, ENG-13: a hedged call is one call, whoever answers; a fallback says what it stands in for.
#[test]
fn eng_13_hedges_and_fallbacks_belong_to_their_call() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.no_call_timeout().no_retry().hedge(Hedge::after(millis(100))));
    let mut events = guard.subscribe(100);
    let hedged = |steps: &[Step]| {
        let script = Script::new(&hands, steps.iter().copied());
        run(&hands, guard.idempotent().hedged().call(|attempt| script.attempt(attempt))).is_ok()
    };
    assert!(hedged(&[Step::Hang, Step::OkAfter(millis(50))]));
    assert_eq!(names(&mut events), ["started", "attempt", "hedged", "attempt", "hedge_won", "succeeded"]);
    assert!(hedged(&[Step::OkAfter(millis(150)), Step::Hang]));
    assert_eq!(names(&mut events), ["started", "attempt", "hedged", "attempt", "succeeded"]);

    let answer =
        run(&hands, guard.idempotent().or_value(1).call(async |_| Err::<u32, _>(Fault::io()))).unwrap();
    assert!(answer.is_fallback());
    assert_eq!(names(&mut events), ["started", "attempt", "failed", "given_up", "fallback"]);
}

/// ENG-13: whoever does not keep up loses events, never the caller: they are dropped and counted.
#[test]
fn eng_13_a_listener_that_sleeps_holds_up_nobody() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b);
    let mut events = guard.subscribe(4);
    for _ in 0..10 {
        told(&hands, &guard, &mut guard.subscribe(1), &[Step::Ok]);
    }
    // Started, attempt and succeeded of ten calls, of which four events fit.
    assert_eq!((names(&mut events).len(), events.dropped()), (4, 26));
}

/// ENG-13: a registry's listener hears all guards, those that come later included, and one guard's listener only that
/// one; when the listener is gone, nobody is told any more.
#[test]
fn eng_13_a_registry_has_one_ear_for_all() {
    let hands = ManualClock::new();
    let registry = Registry::builder().clock(hands.clock()).build();
    let mut all = registry.subscribe(100);
    let one = registry.register(Guard::builder("one")).unwrap();
    let two = registry.register(Guard::builder("two")).unwrap();
    let mut only_two = two.subscribe(100);
    for guard in [&one, &two] {
        run(&hands, guard.call(async |_| Ok::<_, Fault>(()))).unwrap();
    }
    let guards = |events: &mut Events| {
        std::iter::from_fn(|| events.try_next()).map(|event| event.guard.to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(guards(&mut all), ["one", "two"].map(String::from).into());
    assert_eq!(guards(&mut only_two), ["two".to_owned()].into());
    drop((one, two));
    registry.remove("one");
    registry.remove("two");
    drop(registry);
    let mut next = std::pin::pin!(all.next());
    assert!(matches!(poll_once(next.as_mut()), Poll::Ready(None)), "the last guard is gone");
}

/// ENG-13: the last rejections can be asked for with their reason, whether anybody listened or not.
#[test]
fn eng_13_the_last_rejections_are_remembered() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| {
        b.rate_limit(RateLimit::calls(1).per(secs(10)))
            .bulkhead(Bulkhead::max_calls(1))
            .breaker(Breaker::default())
    });
    let call = || {
        let _ = run(&hands, guard.call(async |_| Ok::<_, Fault>(())));
        hands.advance(secs(1));
    };
    call();
    call();
    guard.breaker().unwrap().force_open("maintenance");
    call();
    let seen: Vec<_> = guard
        .last_rejections()
        .into_iter()
        .map(|one| (one.ago.as_secs_f64().round(), one.by, one.retry_after))
        .collect();
    assert_eq!(seen, [(1.0, Policy::Breaker, None), (2.0, Policy::RateLimit, Some(secs(9)))]);
    assert_eq!(guard.breaker().unwrap().state(), State::ForcedOpen);
}

/// ENG-13: the page of events has every event.
#[test]
fn eng_13_every_event_is_documented() {
    let page = include_str!("../../docs/events.md");
    for name in EventKind::NAMES {
        assert!(page.contains(&format!("| `{name}` |")), "`{name}` has no line in docs/events.md");
    }
}

/// ENG-5, ENG-13: a circuit that is restored tells for how long it is still open.
#[test]
fn eng_13_a_restored_circuit_tells_what_is_left_of_its_cooldown() {
    let hands = ManualClock::new();
    let build = || {
        let breaker = Breaker::consecutive_failures(1).cooldown(secs(30));
        Guard::builder("peer").clock(hands.clock()).breaker(breaker).build().unwrap()
    };
    let before = build();
    before.breaker().unwrap().admit().unwrap().finish(Outcome::Failure);
    hands.advance(secs(20));
    let snapshot = before.breaker().unwrap().snapshot();
    let after = build();
    let mut events = after.subscribe(10);
    after.breaker().unwrap().restore(&snapshot);
    let opened = events.try_next().unwrap().what;
    assert!(
        matches!(opened, EventKind::Opened { cooldown: Some(left), .. } if (millis(9_900)..=millis(10_100)).contains(&left)),
        "{opened:?}"
    );
}

/// ENG-13: the events of a guard end with that guard, also where its registry lives on and has another one of its name.
#[test]
fn eng_13_the_events_of_a_guard_end_with_it() {
    let hands = ManualClock::new();
    let registry = Registry::builder().clock(hands.clock()).build();
    let one = registry.register(Guard::builder("one")).unwrap();
    let mut events = one.subscribe(10);
    registry.remove("one");
    drop(one);
    let again = registry.register(Guard::builder("one")).unwrap();
    run(&hands, again.call(async |_| Ok::<_, Fault>(()))).unwrap();
    assert_eq!(names(&mut events), Vec::<&str>::new(), "another guard of the same name");
    let mut next = std::pin::pin!(events.next());
    assert!(matches!(poll_once(next.as_mut()), Poll::Ready(None)), "the guard is gone");
}

/// ENG-13: nothing and everything are capacities too.
#[test]
fn eng_13_any_capacity_is_a_capacity() {
    let guard = Guard::builder("one").build().unwrap();
    let _ = guard.subscribe(usize::MAX);
    let _ = guard.subscribe(0);
}

/// ENG-13: a retry after a rejection is of the attempt that was rejected.
#[test]
fn eng_13_a_retry_bears_the_number_of_its_attempt() {
    let hands = ManualClock::new();
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(secs(1)).no_jitter()).on_rejection();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .retry(retry)
        .breaker(Breaker::consecutive_failures(1).cooldown(millis(500)))
        .build()
        .unwrap();
    guard.breaker().unwrap().admit().unwrap().finish(Outcome::Failure);
    let mut events = guard.subscribe(100);
    run(&hands, guard.idempotent().call(async |_| Ok::<_, Fault>(()))).unwrap();
    let numbers: Vec<u32> = std::iter::from_fn(|| events.try_next())
        .filter_map(|event| match event.what {
            EventKind::Retry { number, .. } | EventKind::Attempt { number, .. } => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [1, 1]);
}

/// ENG-13, OBS-2: an attempt that the call timeout ends has failed like any other; else a peer that hangs would have no faults.
#[test]
fn eng_13_an_attempt_that_the_call_timeout_ends_has_failed() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer").clock(hands.clock()).call_timeout(secs(1)).build().unwrap();
    let mut events = guard.subscribe(100);
    let script = Script::new(&hands, [Step::Hang]);
    let _ = run(&hands, guard.idempotent().call(|attempt| script.attempt(attempt)));
    assert_eq!(names(&mut events), ["started", "attempt", "failed", "timed_out", "given_up"]);
}
