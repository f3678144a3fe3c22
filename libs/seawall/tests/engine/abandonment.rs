//! Callers who leave before their peer has answered: a peer that hangs is found out, a healthy one is not blamed.

use std::time::Duration;

use seawall::breaker::State;
use seawall::{Breaker, Deadline, Fault, Guard, millis, secs};
use seawall_testkit::{ManualClock, Script, Step, poll_once, run};

const ATTEMPT_TIMEOUT: Duration = secs(3);
const PATIENCE: Duration = millis(600);

fn breakers() -> [Breaker; 4] {
    [
        Breaker::default(),
        Breaker::failure_rate(50),
        Breaker::failure_rate(50).over_time(secs(60)),
        Breaker::failure_rate(50).over_calls(50).slow_after(secs(2)),
    ]
}

fn guard(hands: &ManualClock, breaker: Breaker) -> Guard {
    Guard::builder("peer")
        .clock(hands.clock())
        .no_retry()
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .breaker(breaker)
        .build()
        .unwrap()
}

fn by_drop(hands: &ManualClock, guard: &Guard, script: &Script) {
    let mut call = Box::pin(guard.call(|attempt| script.attempt(attempt)));
    if poll_once(call.as_mut()).is_pending() {
        hands.advance(PATIENCE);
    }
}

fn by_deadline(hands: &ManualClock, guard: &Guard, script: &Script) {
    let deadline = Deadline::within_on(&hands.clock(), PATIENCE);
    let _ = run(hands, guard.deadline(deadline).call(|attempt| script.attempt(attempt)));
}

/// The call stands within one of another guard, whose deadline is the shorter one.
fn by_outer_guard(hands: &ManualClock, guard: &Guard, script: &Script) {
    let outer =
        Guard::builder("outer").clock(hands.clock()).no_retry().call_timeout(PATIENCE).build().unwrap();
    let _ = run(hands, outer.call(async |_| guard.call(|attempt| script.attempt(attempt)).await));
}

type Leave = fn(&ManualClock, &Guard, &Script);
const WAYS: [(&str, Leave); 3] =
    [("dropped", by_drop), ("deadline", by_deadline), ("outer guard", by_outer_guard)];

/// Numbers by chance, the same for the same seed.
fn chances(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    })
}

/// ENG-5. Trap "a peer that hangs 95 % of its calls opens the circuit, however early its callers give up".
#[test]
fn eng_5_a_peer_that_hangs_opens_the_circuit_however_early_its_callers_leave() {
    for (way, leave) in WAYS {
        for (shape, breaker) in breakers().into_iter().enumerate() {
            for seed in 0..8 {
                let hands = ManualClock::new();
                let guard = guard(&hands, breaker.clone());
                let steps = chances(seed).map(|chance| if chance < 0.95 { Step::Hang } else { Step::Ok });
                let script = Script::new(&hands, steps.take(400));
                let opened = (1..=400).find(|_| {
                    leave(&hands, &guard, &script);
                    guard.breaker().unwrap().state() == State::Open
                });
                assert!(
                    opened.is_some_and(|calls| calls <= 60),
                    "{way}, breaker {shape}, seed {seed}: opened by call {opened:?}"
                );
            }
        }
    }
}

/// ENG-5: callers who leave a healthy peer in 10 % of the calls never open its circuit.
#[test]
fn eng_5_callers_who_leave_a_healthy_peer_never_open_its_circuit() {
    for (shape, breaker) in breakers().into_iter().enumerate() {
        for seed in 0..4 {
            let hands = ManualClock::new();
            let guard = guard(&hands, breaker.clone());
            let steps = chances(seed).map(|chance| if chance < 0.1 { Step::Hang } else { Step::Ok });
            let script = Script::new(&hands, steps.take(10_000));
            for number in 0..10_000 {
                by_drop(&hands, &guard, &script);
                let state = guard.breaker().unwrap().state();
                assert_eq!(state, State::Closed, "breaker {shape}, seed {seed}, after call {number}");
            }
            assert!(guard.breaker().unwrap().counts().abandoned > 800);
        }
    }
}

/// ENG-5: a peer that answers with business faults answers. Callers who leave it early do not outnumber them.
#[test]
fn eng_5_business_faults_are_answers_to_those_who_leave_early() {
    let hands = ManualClock::new();
    let guard = guard(&hands, Breaker::consecutive_failures(1));
    let missing = Step::FailAfter(millis(5), Fault::of_http(404).unwrap());
    let steps = (0..1_000).map(|number| if number % 10 == 0 { Step::Hang } else { missing });
    let script = Script::new(&hands, steps);
    for _ in 0..1_000 {
        let deadline = Deadline::within_on(&hands.clock(), PATIENCE);
        let _ = run(&hands, guard.deadline(deadline).call(|attempt| script.attempt(attempt)));
        assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    }
    assert_eq!(guard.breaker().unwrap().counts().abandoned, 100);
}

/// ENG-5: a hundred callers who leave a healthy peer in one moment, because a connection with all of them is closed, are no
/// hundred failures of the peer.
#[test]
fn eng_5_many_who_leave_at_once_do_not_open_the_circuit() {
    let hands = ManualClock::new();
    let guard = guard(&hands, Breaker::default());
    let script = Script::new(&hands, (0..300).map(|number| if number < 100 { Step::Hang } else { Step::Ok }));
    let mut calls: Vec<_> =
        (0..100).map(|_| Box::pin(guard.call(|attempt| script.attempt(attempt)))).collect();
    calls.iter_mut().for_each(|call| assert!(poll_once(call.as_mut()).is_pending()));
    hands.advance(PATIENCE);
    drop(calls);
    assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    for _ in 0..200 {
        by_drop(&hands, &guard, &script);
        assert_eq!(guard.breaker().unwrap().state(), State::Closed);
    }
}

/// ENG-5: a probe of a peer that hangs, abandoned early, opens the circuit again, whether the circuit opened because of
/// abandoned calls or because of failures.
#[test]
fn eng_5_probes_abandoned_early_open_a_half_open_circuit_again() {
    for (opened_by, step, probes) in
        [("abandoned calls", Step::Hang, 1), ("failures", Step::Fail(Fault::io()), 3)]
    {
        for (shape, breaker) in breakers().into_iter().enumerate() {
            let hands = ManualClock::new();
            let guard = guard(&hands, breaker);
            let circuit = guard.breaker().unwrap();
            let script = Script::new(&hands, std::iter::repeat_n(step, 60));
            let opened = (0..60).any(|_| {
                by_drop(&hands, &guard, &script);
                circuit.state() == State::Open
            });
            assert!(opened);
            for round in 0..3 {
                hands.advance(secs(31));
                let hanging = Script::new(&hands, [Step::Hang; 10]);
                let reopened = (1..=10).find(|_| {
                    by_drop(&hands, &guard, &hanging);
                    circuit.state() == State::Open
                });
                let most = if round == 0 { probes } else { 1 };
                assert_eq!(reopened, Some(most), "opened by {opened_by}, breaker {shape}, round {round}");
            }
            hands.advance(secs(31));
            by_drop(&hands, &guard, &Script::new(&hands, [Step::Ok]));
            assert_eq!(circuit.state(), State::Closed, "and a good probe closes it");
            by_drop(&hands, &guard, &Script::new(&hands, [Step::Hang]));
            assert_eq!(circuit.state(), State::Closed, "what was before is forgotten");
        }
    }
}
