//! Trouble on purpose, and what the guard makes of it.

use std::cell::Cell;

use seawall::breaker::State;
use seawall::{Backoff, Breaker, Chaos, Fault, Guard, GuardBuilder, Kind, Policy, Retry, millis, secs};
use seawall_testkit::{ManualClock, drop_at_every_poll, run};

fn guard(hands: &ManualClock, builder: impl Fn(GuardBuilder) -> GuardBuilder) -> Guard {
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(10)).no_jitter());
    builder(Guard::builder("peer").clock(hands.clock()).seed(7).retry(retry)).build().unwrap()
}

/// ENG-15: injected faults are retried, counted and reported like real ones, and the operation is not run.
#[test]
fn eng_15_an_injected_fault_is_like_a_real_one() {
    let hands = ManualClock::new();
    let chaos = Chaos::new().fault_rate(100).fault(Fault::of_http(503).unwrap());
    let guard = guard(&hands, |b| b.chaos(chaos).breaker(Breaker::consecutive_failures(3)));
    let ran = Cell::new(0);
    let operation = async |_| {
        ran.set(ran.get() + 1);
        Ok::<_, Fault>(())
    };
    let error = run(&hands, guard.idempotent().call(operation)).unwrap_err();
    assert_eq!((error.kind(), error.attempts(), error.last(), ran.get()), (Kind::Exhausted, 3, None, 0));
    assert_eq!(guard.breaker().unwrap().state(), State::Open);
    guard.breaker().unwrap().reset("enough");
    guard.chaos().unwrap().switch(false);
    assert!(run(&hands, guard.idempotent().call(operation)).is_ok());
    assert!(
        guard.explain().contains("chaos           off: 100 % of the attempts fail (throttled (http 503))")
    );
}

/// ENG-15, ENG-7: an injected hang is ended by the timeouts; a slow attempt starts later, within its timeout.
#[test]
fn eng_15_hangs_and_latency_are_bounded_by_the_timeouts() {
    let hands = ManualClock::new();
    let took = |chaos: Chaos| {
        let guard = guard(&hands, |b| b.attempt_timeout(secs(1)).no_retry().chaos(chaos));
        let began = hands.now();
        let result = run(&hands, guard.call(async |_| Ok::<_, Fault>(())));
        (result.map_err(|error| error.decided_by()), hands.now().since(began))
    };
    assert_eq!(took(Chaos::new().hang_rate(100)), (Err(Policy::AttemptTimeout), secs(1)));
    assert_eq!(took(Chaos::new().slow_rate(100).slow_by(millis(300))), (Ok(()), millis(300)));
    assert_eq!(took(Chaos::new().slow_rate(100).slow_by(secs(5))), (Err(Policy::AttemptTimeout), secs(1)));
}

/// ENG-15: blocking calls get their share too.
#[test]
fn eng_15_blocking_calls_are_troubled_too() {
    let hands = ManualClock::new();
    let guard = guard(&hands, |b| b.no_retry().chaos(Chaos::new().fault_rate(100)));
    assert_eq!(guard.run(|_| Ok::<_, Fault>(())).unwrap_err().last_fault(), Fault::io());
}

/// PRM-4, ENG-15: dropped while chaos holds it up, a call leaves nothing behind.
#[test]
fn prm_4_a_call_dropped_in_trouble_leaves_nothing() {
    drop_at_every_poll(
        || {
            let hands = ManualClock::new();
            let chaos = Chaos::new().fault_rate(40).hang_rate(20).slow_rate(30).slow_by(millis(100));
            let breaker = Breaker::consecutive_failures(100);
            (guard(&hands, |b| b.attempt_timeout(secs(1)).chaos(chaos).breaker(breaker.clone())), hands)
        },
        |(guard, _)| {
            Box::pin(async {
                for _ in 0..20 {
                    let _ = guard.idempotent().call(async |_| Ok::<_, Fault>(())).await;
                }
            })
        },
        |(_, hands)| {
            hands.advance_to_next();
        },
        |(guard, hands), dropped| {
            assert_eq!(
                (hands.sleepers_waiting(), guard.breaker().unwrap().probes_under_way()),
                (0, 0),
                "{dropped:?}"
            );
        },
    );
}
