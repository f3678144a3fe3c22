//! Rate limit and bulkhead inside of a guard.

use std::cell::Cell;
use std::pin::Pin;

use seawall::breaker::State;
use seawall::{
    Backoff, Breaker, Bulkhead, Deadline, Error, Fault, Guard, GuardBuilder, Kind, Policy, Ran, RateLimit,
    Retry, millis, secs,
};
use seawall_testkit::{Dropped, ManualClock, Script, Step, drop_at_every_poll, poll_once, run};

fn guard(hands: &ManualClock, builder: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    builder(Guard::builder("peer").clock(hands.clock()).seed(1)).build().unwrap()
}

fn call(hands: &ManualClock, guard: &Guard, script: &Script) -> Result<(), Error<Fault>> {
    run(hands, guard.idempotent().call(|attempt| script.attempt(attempt)))
}

fn call_within(
    hands: &ManualClock,
    guard: &Guard,
    script: &Script,
    time: std::time::Duration,
) -> Result<(), Error<Fault>> {
    let deadline = Deadline::within_on(&hands.clock(), time);
    run(hands, guard.idempotent().deadline(deadline).call(|attempt| script.attempt(attempt)))
}

/// A call that is under way, boxed so that it can be kept and dropped at will.
fn start<'a>(
    guard: &'a Guard,
    script: &'a Script,
) -> Pin<Box<dyn Future<Output = Result<(), Error<Fault>>> + 'a>> {
    let mut call: Pin<Box<dyn Future<Output = _>>> =
        Box::pin(guard.idempotent().call(|attempt| script.attempt(attempt)));
    assert!(poll_once(call.as_mut()).is_pending());
    call
}

/// ENG-6, ENG-11: a full bulkhead refuses at once, says who decided, and is no mark against the peer.
#[test]
fn eng_6_a_full_bulkhead_rejects_and_the_breaker_ignores_it() {
    let hands = ManualClock::new();
    let guard =
        guard(&hands, |b| b.bulkhead(Bulkhead::max_calls(2)).breaker(Breaker::consecutive_failures(1)));
    let script = Script::new(&hands, [Step::Hang, Step::Hang]);
    let under_way = [start(&guard, &script), start(&guard, &script)];
    for _ in 0..5 {
        let error = call(&hands, &guard, &script).unwrap_err();
        assert_eq!((error.kind(), error.decided_by()), (Kind::Rejected, Policy::Bulkhead));
        assert_eq!((error.ran(), error.attempts(), error.retry_after()), (Ran::No, 0, None));
        assert_eq!(error.to_string(), "peer: rejected by the bulkhead after no attempt");
    }
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    drop(under_way);
    assert_eq!(guard.bulkhead().unwrap().inside(), 0);
    assert!(call(&hands, &guard, &script).is_ok());
}

/// ENG-5, ENG-6: a probe that finds the bulkhead full frees its place in the circuit.
#[test]
fn eng_5_a_probe_that_is_rejected_further_in_frees_its_place() {
    let hands = ManualClock::new();
    let limits = |b: GuardBuilder| {
        b.bulkhead(Bulkhead::max_calls(1)).breaker(Breaker::consecutive_failures(1).cooldown(secs(1)))
    };
    let guard = guard(&hands, |b| limits(b).no_retry());
    let script = Script::new(&hands, [Step::Hang]);
    let _inside = start(&guard, &script);
    guard.breaker().unwrap().admit().unwrap().finish(seawall::breaker::Outcome::Failure);
    hands.advance(secs(1));
    assert_eq!(call(&hands, &guard, &script).unwrap_err().decided_by(), Policy::Bulkhead);
    let breaker = guard.breaker().unwrap();
    assert_eq!((breaker.state(), breaker.probes_under_way()), (State::HalfOpen, 0));
}

/// ENG-6: who waits gets the place of who leaves, in order, and who waits in vain is refused when its patience ends.
#[test]
fn eng_6_the_line_of_a_guard_is_served_in_order() {
    let hands = ManualClock::new();
    let guard =
        guard(&hands, |b| b.bulkhead(Bulkhead::max_calls(1).max_wait(secs(2)).max_waiting(5)).no_retry());
    let script =
        Script::new(&hands, [Step::OkAfter(secs(1)), Step::OkAfter(secs(1)), Step::OkAfter(secs(5))]);
    let began = hands.now();
    let mut calls: Vec<_> = (0..4).map(|_| start(&guard, &script)).collect();
    let mut ended: Vec<(usize, Option<Policy>, u64)> = Vec::new();
    while ended.len() < 4 {
        for (number, call) in calls.iter_mut().enumerate() {
            if !ended.iter().any(|(ended, ..)| *ended == number)
                && let std::task::Poll::Ready(result) = poll_once(call.as_mut())
            {
                let decided_by = result.err().map(|error| error.decided_by());
                ended.push((number, decided_by, hands.now().since(began).as_secs()));
            }
        }
        hands.advance_to_next();
    }
    assert_eq!(
        ended,
        [(0, None, 1), (1, None, 2), (3, Some(Policy::Bulkhead), 2), (2, None, 7)],
        "each in its turn, and the last refused after its two seconds"
    );
    assert_eq!((guard.bulkhead().unwrap().inside(), guard.bulkhead().unwrap().waiting()), (0, 0));
}

/// ENG-6, ENG-7: time in the line counts against the call, and not against the attempt.
#[test]
fn eng_7_time_in_a_line_is_the_calls_and_not_the_attempts() {
    let hands = ManualClock::new();
    let bulkhead = Bulkhead::max_calls(1).max_wait(secs(60)).max_waiting(5);
    let guard =
        guard(&hands, |b| b.call_timeout(secs(70)).attempt_timeout(secs(3)).bulkhead(bulkhead).no_retry());
    let script = Script::new(&hands, [Step::OkAfter(secs(2)); 3]);
    let mut first = start(&guard, &script);
    let mut second = start(&guard, &script);
    hands.advance(secs(2));
    assert!(poll_once(first.as_mut()).is_ready());
    assert!(poll_once(second.as_mut()).is_pending(), "it has its place now");
    hands.advance(secs(2));
    assert!(matches!(poll_once(second.as_mut()), std::task::Poll::Ready(Ok(()))), "two seconds of three");
    let holder = guard.bulkhead().unwrap().try_enter().unwrap();
    let error = call_within(&hands, &guard, &script, secs(10)).unwrap_err();
    assert_eq!(
        (error.kind(), error.decided_by(), error.attempts()),
        (Kind::TimedOut, Policy::CallTimeout, 0)
    );
    assert_eq!(error.ran(), Ran::No);
    drop(holder);
}

/// ENG-8: above the limit a call waits for its turn or is refused with the time to come back.
#[test]
fn eng_8_calls_above_the_limit_wait_for_their_turn() {
    let hands = ManualClock::new();
    let guard =
        guard(&hands, |b| b.rate_limit(RateLimit::calls(10).burst(2).max_wait(millis(150))).no_retry());
    let script = Script::new(&hands, []);
    let began = hands.now();
    let took = |hands: &ManualClock| hands.now().since(began).as_millis();
    (0..2).for_each(|_| call(&hands, &guard, &script).unwrap());
    assert_eq!(took(&hands), 0, "the burst");
    call(&hands, &guard, &script).unwrap();
    assert_eq!(took(&hands), 100, "its turn");
    // Two that wait, and one whose turn would come too late.
    let waiting = [start(&guard, &script)];
    let error = call(&hands, &guard, &script).unwrap_err();
    assert_eq!((error.kind(), error.decided_by(), error.ran()), (Kind::Rejected, Policy::RateLimit, Ran::No));
    assert_eq!(error.retry_after(), Some(millis(200)));
    drop(waiting);
    hands.advance(millis(100));
    call(&hands, &guard, &script).unwrap();
    assert_eq!(took(&hands), 200, "the turn of the one that was dropped was given back");
}

/// ENG-8, ENG-7: a turn that comes after the deadline is no turn.
#[test]
fn eng_8_a_turn_after_the_deadline_is_refused_at_once() {
    let hands = ManualClock::new();
    let limit = RateLimit::calls(1).per(secs(10)).max_wait(secs(60));
    let guard = guard(&hands, |b| b.call_timeout(secs(70)).rate_limit(limit).no_retry());
    let script = Script::new(&hands, []);
    call(&hands, &guard, &script).unwrap();
    let began = hands.now();
    let error = call_within(&hands, &guard, &script, secs(5)).unwrap_err();
    assert_eq!((error.decided_by(), error.retry_after()), (Policy::RateLimit, Some(secs(10))));
    assert_eq!(hands.now(), began, "it was said at once");
}

/// ENG-3, ENG-8: each attempt is one call to the limiter; a rejection is retried only if asked for.
#[test]
fn eng_8_each_attempt_takes_a_turn() {
    let hands = ManualClock::new();
    let retry = || Retry::max_attempts(4).backoff(Backoff::constant(millis(10)).no_jitter());
    let make =
        |retry: Retry| guard(&hands, |b| b.retry(retry.clone()).rate_limit(RateLimit::calls(1).burst(2)));
    let failing = Script::new(&hands, [Step::Fail(Fault::io()); 4]);
    let error = call(&hands, &make(retry()), &failing).unwrap_err();
    assert_eq!(
        (error.decided_by(), error.attempts()),
        (Policy::RateLimit, 2),
        "the third attempt was not let through"
    );
    let failing = Script::new(&hands, [Step::Fail(Fault::io()); 2]);
    assert!(call(&hands, &make(retry().on_rejection()), &failing).is_ok(), "it came back when told");
}

/// PRM-4, ENG-6, ENG-8: dropped in the line, while it waits for its turn, inside: nothing is lost.
#[test]
fn prm_4_a_call_dropped_while_it_waits_loses_nothing() {
    struct Scene {
        hands: ManualClock,
        guard: Guard,
        script: Script,
        polls: Cell<u32>,
    }
    let polls = drop_at_every_poll(
        || {
            let hands = ManualClock::new();
            let guard = guard(&hands, |b| {
                b.call_timeout(secs(60))
                    .attempt_timeout(secs(3))
                    .retry(Retry::max_attempts(3).backoff(Backoff::constant(millis(500)).no_jitter()))
                    .breaker(Breaker::consecutive_failures(100))
                    .rate_limit(RateLimit::calls(1).max_wait(secs(5)))
                    .bulkhead(Bulkhead::max_calls(1).max_wait(secs(5)).max_waiting(5))
            });
            guard.rate_limiter().unwrap().try_acquire().unwrap();
            let script = Script::new(
                &hands,
                [Step::FailAfter(millis(10), Fault::io()), Step::Hang, Step::OkAfter(millis(5))],
            );
            Scene { hands, guard, script, polls: Cell::new(0) }
        },
        |scene| {
            Box::pin(async {
                // Somebody else is inside for the first second or so.
                let mut holder = scene.guard.bulkhead().unwrap().try_enter().ok();
                let mut call =
                    std::pin::pin!(scene.guard.idempotent().call(|attempt| scene.script.attempt(attempt)));
                let result = std::future::poll_fn(|cx| {
                    scene.polls.set(scene.polls.get() + 1);
                    if scene.polls.get() == 3 {
                        holder = None;
                    }
                    call.as_mut().poll(cx)
                });
                result.await.unwrap();
            })
        },
        |scene| {
            scene.hands.advance_to_next();
        },
        |scene, dropped: Dropped| {
            let gate = scene.guard.bulkhead().unwrap();
            assert_eq!((gate.inside(), gate.waiting()), (0, 0), "{dropped:?}: a place is lost");
            assert_eq!(scene.hands.sleepers_waiting(), 0, "{dropped:?}: a timer goes on");
            assert_eq!(scene.script.under_way(), 0, "{dropped:?}: an attempt goes on");
            scene.hands.advance(secs(10));
            assert!(scene.guard.rate_limiter().unwrap().try_acquire().is_ok(), "{dropped:?}: a turn is lost");
        },
    );
    assert!(polls >= 8, "{polls} polls");
}

/// ENG-11: the whole guard in words, in its order.
#[test]
fn eng_11_the_whole_guard_is_explained_in_order() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| {
        b.attempt_timeout(secs(3))
            .breaker(Breaker::default())
            .rate_limit(RateLimit::calls(100).burst(20).max_wait(millis(500)))
            .bulkhead(Bulkhead::default().max_wait(secs(1)))
    });
    let text = guard.explain();
    let names: Vec<_> = text.lines().skip(1).map(|line| line.trim().split("  ").next().unwrap()).collect();
    let order = [
        "call timeout",
        "retry",
        "budget",
        "breaker",
        "rate limit",
        "bulkhead",
        "attempt timeout 3s",
        "operation",
    ];
    assert_eq!(names, order, "{text}");
    assert!(text.contains("rate limit      100 calls per 1s, 20 at once, waits up to 500ms\n"), "{text}");
    assert!(text.contains("bulkhead        20 calls at once, 20 wait up to 1s\n"), "{text}");
}

/// ENG-7: a call timeout that is derived leaves time for the waits in front of each attempt; else they could never be used.
#[test]
fn eng_7_a_derived_timeout_covers_the_waits_for_turn_and_place() {
    let guard = Guard::builder("peer")
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(2).backoff(Backoff::constant(secs(1)).no_jitter()))
        .rate_limit(RateLimit::calls(10).max_wait(secs(3)))
        .bulkhead(Bulkhead::max_calls(1).max_wait(secs(5)))
        .build()
        .unwrap();
    // Twice (one second of its own, three for its turn, five for its place), and one between.
    assert!(guard.explain().contains("call timeout    19.1s"), "{}", guard.explain());
}
