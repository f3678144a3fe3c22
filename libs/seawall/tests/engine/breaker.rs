//! The breaker inside of a guard.

use std::future::pending;

use seawall::breaker::{Scope, State, Tally};
use seawall::{Backoff, Breaker, Deadline, Fault, Guard, Kind, Policy, Retry, millis, secs};
use seawall_testkit::{ManualClock, Script, Step, run};

fn call(hands: &ManualClock, guard: &Guard, script: &Script) -> Result<(), seawall::Error<Fault>> {
    run(hands, guard.idempotent().call(|attempt| script.attempt(attempt)))
}

/// ENG-11. Trap "retry inside breaker counts one operation as k failures": once per attempt or once per call, by scope.
#[test]
fn eng_11_the_breaker_counts_attempts_or_calls() {
    for (scope, calls_to_open) in [(Scope::Attempt, 2), (Scope::Call, 5)] {
        let hands = ManualClock::new();
        let guard = Guard::builder("peer")
            .clock(hands.clock())
            .retry(Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter()))
            .breaker(Breaker::consecutive_failures(5).scope(scope))
            .build()
            .unwrap();
        let script = Script::new(&hands, [Step::Fail(Fault::io()); 15]);
        let opened_after = (1..).find(|_| {
            assert!(call(&hands, &guard, &script).is_err());
            guard.breaker().unwrap().state() == State::Open
        });
        assert_eq!(opened_after, Some(calls_to_open), "{scope:?}");
    }
}

/// ENG-5: a call as a whole is one probe, with all its attempts.
#[test]
fn eng_5_with_scope_call_a_whole_call_is_the_probe() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .retry(Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter()))
        .breaker(Breaker::consecutive_failures(1).cooldown(secs(10)).scope(Scope::Call))
        .build()
        .unwrap();
    let script = Script::new(&hands, [Step::Fail(Fault::io()); 5]);
    assert_eq!(call(&hands, &guard, &script).unwrap_err().kind(), Kind::Exhausted);
    assert_eq!(call(&hands, &guard, &script).unwrap_err().kind(), Kind::Rejected);
    hands.advance(secs(10));
    assert!(call(&hands, &guard, &script).is_ok(), "two failures and a success");
    assert_eq!((guard.breaker().unwrap().state(), script.attempts()), (State::Closed, 6));
}

/// ENG-5. The time of a whole call once began only with the first attempt that had to wait, so that a call whose first attempt
/// failed at once was given up too early to count, however long its caller had waited. Found by the plain model.
#[test]
fn eng_5_with_scope_call_the_time_begins_with_an_attempt_that_fails_at_once() {
    for timed in [true, false] {
        let hands = ManualClock::new();
        let retry = Retry::max_attempts(3).backoff(Backoff::constant(secs(2)).no_jitter()).no_budget();
        let mut builder = Guard::builder("peer").clock(hands.clock()).retry(retry).no_call_timeout();
        if timed {
            builder = builder.call_timeout(secs(10));
        }
        let breaker = Breaker::consecutive_failures(1).abandoned_after(secs(3)).scope(Scope::Call);
        let guard = builder.breaker(breaker).build().unwrap();
        for (waited, state) in [(secs(3), State::Closed), (secs(4), State::Open)] {
            let script = Script::new(&hands, [Step::Fail(Fault::io()), Step::Hang]);
            let mut call = Box::pin(guard.idempotent().call(|attempt| script.attempt(attempt)));
            assert!(seawall_testkit::poll_once(call.as_mut()).is_pending(), "it backs off");
            hands.advance(secs(2));
            assert!(seawall_testkit::poll_once(call.as_mut()).is_pending(), "its second attempt hangs");
            hands.advance(waited - secs(2));
            drop(call);
            assert_eq!(guard.breaker().unwrap().state(), state, "given up after {waited:?}, timed: {timed}");
        }
    }
}

/// ENG-5. Trap "a backend that hangs 95 % of calls under an outer timeout and is never rejected": it trips, whether the
/// outer timeout drops the call or a deadline ends it.
#[test]
fn eng_5_a_backend_that_hangs_under_an_outer_timeout_trips() {
    let by_drop = |hands: &ManualClock, guard: &Guard, script: &Script| {
        let mut call = Box::pin(guard.idempotent().call(|attempt| script.attempt(attempt)));
        if seawall_testkit::poll_once(call.as_mut()).is_pending() {
            hands.advance(secs(2));
        }
    };
    let by_deadline = |hands: &ManualClock, guard: &Guard, script: &Script| {
        let deadline = Deadline::within_on(&hands.clock(), secs(2));
        let _ = run(hands, guard.deadline(deadline).idempotent().call(|attempt| script.attempt(attempt)));
    };
    for outer in [&by_drop as &dyn Fn(&ManualClock, &Guard, &Script), &by_deadline] {
        let hands = ManualClock::new();
        let guard = Guard::builder("tarpit")
            .clock(hands.clock())
            .attempt_timeout(secs(3))
            .breaker(Breaker::failure_rate(50).over_calls(100).minimum_calls(20))
            .build()
            .unwrap();
        let script =
            Script::new(&hands, (0..100).map(|number| if number % 20 == 0 { Step::Ok } else { Step::Hang }));
        let calls = (1..=100).find(|_| {
            outer(&hands, &guard, &script);
            guard.breaker().unwrap().state() == State::Open
        });
        assert_eq!(calls, Some(20), "it opens as soon as there are enough calls to judge");
    }
}

/// ENG-5: one impatient caller among others can't trip the circuit for all: what was cut short early says nothing about a peer
/// that answers the others.
#[test]
fn eng_5_an_impatient_caller_does_not_trip_it() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .attempt_timeout(secs(3))
        .breaker(Breaker::consecutive_failures(1))
        .build()
        .unwrap();
    for _ in 0..100 {
        let deadline = Deadline::within_on(&hands.clock(), millis(50));
        let impatient = guard.deadline(deadline).call(async |_| pending::<Result<(), Fault>>().await);
        assert_eq!(run(&hands, impatient).unwrap_err().decided_by(), Policy::CallTimeout);
        assert!(call(&hands, &guard, &Script::new(&hands, [])).is_ok());
    }
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    assert_eq!(guard.breaker().unwrap().counts().abandoned, 100);
}

/// ENG-5, ENG-7: the guard's own timeouts count, the attempt's and the call's.
#[test]
fn eng_5_the_guards_own_timeouts_are_failures() {
    for call_timeout in [false, true] {
        let hands = ManualClock::new();
        let builder =
            Guard::builder("peer").clock(hands.clock()).no_retry().breaker(Breaker::consecutive_failures(3));
        let guard =
            if call_timeout { builder.call_timeout(secs(1)) } else { builder.attempt_timeout(secs(1)) };
        let guard = guard.build().unwrap();
        let script = Script::new(&hands, [Step::Hang; 3]);
        (0..3).for_each(|_| assert_eq!(call(&hands, &guard, &script).unwrap_err().kind(), Kind::TimedOut));
        assert_eq!(guard.breaker().unwrap().state(), State::Open);
    }
}

/// ENG-1: business faults neither count against the breaker nor are retried; the others count.
#[test]
fn eng_1_business_faults_leave_the_circuit_alone() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .breaker(Breaker::consecutive_failures(1))
        .build()
        .unwrap();
    let declined = Script::new(&hands, [Step::Fail(Fault::of_http(422).unwrap()); 10]);
    for _ in 0..10 {
        let error = call(&hands, &guard, &declined).unwrap_err();
        assert_eq!(
            (error.kind(), error.decided_by(), error.attempts()),
            (Kind::Failed, Policy::Operation, 1)
        );
        assert_eq!(error.to_string(), "peer: failed after 1 attempt: business fault (http 422)");
    }
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    let unexpected = Script::new(&hands, [Step::Fail(Fault::system())]);
    assert_eq!(call(&hands, &guard, &unexpected).unwrap_err().attempts(), 1, "never retried");
    assert_eq!(guard.breaker().unwrap().state(), State::Open, "but it counts");
}

/// ENG-5: slow calls are measured from the start of each attempt.
#[test]
fn eng_5_slow_attempts_open_the_circuit() {
    let hands = ManualClock::new();
    let breaker =
        Breaker::failure_rate(100).over_calls(10).minimum_calls(2).slow_after(millis(200)).slow_rate(50);
    let guard = Guard::builder("peer").clock(hands.clock()).breaker(breaker).build().unwrap();
    let script = Script::new(&hands, [Step::OkAfter(millis(199)), Step::OkAfter(millis(200)), Step::Ok]);
    assert!(call(&hands, &guard, &script).is_ok());
    let Tally { calls, failures, slow, .. } = guard.breaker().unwrap().window();
    assert_eq!((calls, failures, slow), (1, 0, 0));
    assert!(call(&hands, &guard, &script).is_ok());
    assert_eq!(guard.breaker().unwrap().state(), State::Open);
}
