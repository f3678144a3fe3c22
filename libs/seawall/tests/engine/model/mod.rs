//! The guard against a plain model of itself: for each call the same end, for the same reason, after the same time; and after
//! each call the same circuit and the same budget.
//!
//! `random.rs` says what holds of any guard under any load; here is said what exactly happens. Calls come one after the other,
//! so that the model needs no threads and no futures: it is lists, counters and one loop.

mod parts;
mod plain;

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use seawall::breaker::{Scope, State};
use seawall::{
    Backoff, Breaker, Budget, Bulkhead, Error, Fault, Guard, RateLimit, Retry, Safety, Time, fault,
};
use seawall_testkit::{ManualClock, Script as Operation, Step, poll_once};

use parts::{BudgetSettings, CircuitSettings, Place, Trip, WINDOW};
use plain::{Does, Ended, How, Parts, Plain, Script, Shape};

/// Time in the steps in which circuits and budgets count it, so that nothing is rounded.
fn time(units: u64) -> Duration {
    Duration::from_nanos(units << 20)
}

fn units(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() >> 20).unwrap()
}

impl Parts {
    fn build(&self, hands: &ManualClock) -> Guard {
        let backoff = match self.shape {
            Shape::Constant => Backoff::constant(time(self.base)),
            Shape::Linear => Backoff::linear(time(self.base)),
            Shape::Doubling => Backoff::exponential(time(self.base)),
        };
        let mut retry = Retry::max_attempts(self.attempts)
            .backoff(backoff.cap(time(self.cap)).no_jitter())
            .retry_after_cap(time(self.asked_cap));
        retry = match self.budget {
            None => retry.no_budget(),
            Some(BudgetSettings::Share { percent, floor }) => {
                let budget = Budget::share_of_calls(percent).window(time(WINDOW));
                retry.budget(budget.floor_per_second(f64::from(floor)))
            }
            Some(BudgetSettings::Tokens { max, hundredths }) => {
                retry.budget(Budget::tokens(f64::from(max)).token_ratio(f64::from(hundredths) / 100.0))
            }
        };
        if self.on_rejection {
            retry = retry.on_rejection();
        }
        let mut builder = Guard::builder("plain").clock(hands.clock()).seed(1).retry(retry);
        builder = match self.call_timeout {
            Some(timeout) => builder.call_timeout(time(timeout)),
            None => builder.no_call_timeout(),
        };
        if let Some(timeout) = self.attempt_timeout {
            builder = builder.attempt_timeout(time(timeout));
        }
        if let Some(circuit) = &self.circuit {
            builder = builder.breaker(breaker(circuit));
        }
        if let Some((interval, burst)) = self.rate {
            builder = builder.rate_limit(RateLimit::calls(1).per(time(interval)).burst(burst));
        }
        if let Some(places) = self.places {
            builder = builder.bulkhead(Bulkhead::max_calls(places));
        }
        builder.build().unwrap()
    }

    /// The script as it can happen with these parts.
    fn possible(&self, mut script: Script) -> Script {
        script.held = script.held.min(self.places.unwrap_or(0));
        if self.call_timeout.is_none() && self.attempt_timeout.is_none() {
            // Nothing else would end a call that hangs.
            script.dropped_after.get_or_insert(5_000);
        }
        script
    }
}

fn breaker(circuit: &CircuitSettings) -> Breaker {
    let breaker = match circuit.trip {
        Trip::Row(failures) => Breaker::consecutive_failures(failures),
        Trip::Rate { percent, window, minimum } => {
            Breaker::failure_rate(percent).over_calls(window).minimum_calls(minimum)
        }
    };
    let breaker = breaker
        .cooldown(time(circuit.cooldown))
        .close_after(circuit.close_after)
        .probe_timeout(time(circuit.lease))
        .scope(if circuit.of_calls { Scope::Call } else { Scope::Attempt });
    if circuit.doubles {
        breaker.cooldown_growth(2.0).cooldown_max(time(8 * circuit.cooldown))
    } else {
        breaker
    }
}

/// Makes the call on the real guard. Whatever is due when it is dropped comes too late.
fn make(guard: &Guard, hands: &ManualClock, script: &Script) -> Ended {
    let operation = Operation::new(
        hands,
        script.attempts.iter().map(|does| match *does {
            Does::Answer(0) => Step::Ok,
            Does::Answer(after) => Step::OkAfter(time(after)),
            Does::Fail(0, fault) => Step::Fail(fault),
            Does::Fail(after, fault) => Step::FailAfter(time(after), fault),
            Does::Hang => Step::Hang,
        }),
    );
    let held: Vec<_> = (0..script.held)
        .filter_map(|_| guard.bulkhead().map(|gate| gate.try_enter().expect("nobody else is inside")))
        .collect();
    let began = hands.now();
    let call = guard.classify(fault::Causes).safety(script.safety).call(|attempt| operation.attempt(attempt));
    let ended = |how| Ended {
        how,
        attempts: u32::try_from(operation.attempts()).unwrap(),
        took: units(hands.now().since(began)),
    };
    let result = {
        let mut call = Box::pin(call);
        let dropped_at = script.dropped_after.map(|after| began + time(after));
        let mut alarm = pin!(dropped_at.map(|at| hands.sleep_until(at)));
        loop {
            if dropped_at.is_some_and(|at| hands.now() >= at) {
                break None;
            }
            if let Poll::Ready(result) = poll_once(call.as_mut()) {
                break Some(result);
            }
            if let Some(alarm) = alarm.as_mut().as_pin_mut() {
                let _ = poll_once(alarm);
            }
            assert!(hands.advance_to_next(), "it would wait for ever");
        }
    };
    assert_eq!(operation.under_way(), 0, "an attempt goes on after its call");
    drop(held);
    ended(match result {
        None => How::Dropped,
        Some(Ok(())) => How::Well,
        Some(Err(error)) => {
            assert_eq!(error.attempts() as usize, operation.attempts(), "{error}");
            badly(&error)
        }
    })
}

fn badly(error: &Error<Fault>) -> How {
    How::Badly {
        kind: error.kind(),
        by: error.decided_by(),
        ran: error.ran(),
        come_back: error.retry_after().map(units),
    }
}

fn circuits() -> impl Strategy<Value = CircuitSettings> {
    let trip = prop_oneof![
        (1u32..5).prop_map(Trip::Row),
        (1u8..=100, 1u32..10, 0u32..10).prop_map(|(percent, window, minimum)| Trip::Rate {
            percent,
            window,
            minimum: (minimum % window).max(1),
        }),
    ];
    (trip, any::<(bool, bool)>(), 2u64..600, 1u32..4, 1u64..200).prop_map(
        |(trip, (of_calls, doubles), cooldown, close_after, quarter)| CircuitSettings {
            trip,
            of_calls,
            cooldown,
            doubles,
            close_after,
            lease: 4 * quarter,
        },
    )
}

fn parts() -> impl Strategy<Value = Parts> {
    let timeouts = (prop::option::of(100u64..2_000), prop::option::of(10u64..500));
    let shape = prop_oneof![Just(Shape::Constant), Just(Shape::Linear), Just(Shape::Doubling)];
    // The first wait has to fit into the call timeout, and no base is above its cap.
    let waits = (shape, 0u64..90, 0u64..300, prop_oneof![Just(1u64), 2u64..200]);
    let budget = prop_oneof![
        (prop_oneof![Just(10u8), Just(20), Just(50), Just(100)], 0u8..4)
            .prop_map(|(percent, floor)| BudgetSettings::Share { percent, floor }),
        (1u8..8, 1u8..200).prop_map(|(max, hundredths)| BudgetSettings::Tokens { max, hundredths }),
    ];
    let limits = (prop::option::of((1u64..300, 1u32..6)), prop::option::of(1u32..4));
    (timeouts, 1u32..6, waits, any::<bool>(), prop::option::of(budget), prop::option::of(circuits()), limits)
        .prop_map(|((call, attempt), attempts, waits, on_rejection, budget, circuit, (rate, places))| {
            let (shape, base, more, asked_cap) = waits;
            Parts {
                call_timeout: call,
                attempt_timeout: attempt.map(|attempt| attempt.min(call.unwrap_or(attempt))),
                attempts,
                shape,
                base,
                cap: (base + more).max(1),
                // What a policy asks for is a unit or more, and only what is capped is left to nobody's chance.
                asked_cap: if on_rejection { 1 } else { asked_cap },
                on_rejection,
                budget,
                circuit,
                rate,
                places,
            }
        })
}

fn scripts() -> impl Strategy<Value = Script> {
    let fault = prop_oneof![
        4 => Just(Fault::io()),
        2 => Just(Fault::unreachable()),
        2 => Just(Fault::protocol()),
        1 => Just(Fault::business()),
        1 => Just(Fault::system()),
        1 => Just(Fault::throttled()),
        1 => Just(Fault::throttled().after(Duration::ZERO)),
        // Above every cap: what is asked for below it has jitter.
        1 => (200u64..1_000).prop_map(|asked| Fault::throttled().after(time(asked))),
    ];
    let after = prop_oneof![3 => Just(0u64), 3 => 1u64..50, 2 => 50u64..700];
    let does = prop_oneof![
        3 => after.clone().prop_map(Does::Answer),
        5 => (after, fault).prop_map(|(after, fault)| Does::Fail(after, fault)),
        1 => Just(Does::Hang),
    ];
    let safety =
        prop_oneof![1 => Just(Safety::Once), 3 => Just(Safety::Idempotent), 1 => Just(Safety::Keyed)];
    let pause = prop_oneof![9 => Just(0u64), 9 => 1u64..100, 6 => 100u64..3_000, 1 => 50_000u64..65_000];
    let others = prop_oneof![4 => Just(0u32), 1 => 1u32..100, 2 => 100u32..300];
    let dropped = prop::option::weighted(0.2, 1u64..1_500);
    let held = prop_oneof![4 => Just(0u32), 1 => 1u32..4];
    (pause, others, safety, prop::collection::vec(does, 0..6), dropped, held).prop_map(
        |(pause, others, safety, attempts, dropped_after, held)| Script {
            pause,
            others,
            safety,
            attempts,
            dropped_after,
            held,
        },
    )
}

fn same_circuit(state: State, place: Place) -> bool {
    matches!(
        (state, place),
        (State::Closed, Place::Closed) | (State::Open, Place::Open) | (State::HalfOpen, Place::HalfOpen)
    )
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(cases()) })]

    /// ENG-3, ENG-4, ENG-5, ENG-6, ENG-7, ENG-8, ENG-11: a guard does to each call exactly what its documentation says, which
    /// the model says again in plain words.
    #[test]
    fn eng_11_a_guard_does_what_the_plain_model_says(
        parts in parts(),
        script in prop::collection::vec(scripts(), 1..30),
    ) {
        let hands = ManualClock::new();
        let guard = parts.build(&hands);
        let mut plain = Plain::new(&parts, hands.now().as_nanos() >> 20);
        for (number, script) in script.into_iter().enumerate() {
            let script = parts.possible(script);
            hands.advance(time(script.pause));
            plain.now += script.pause;
            if let (Some(budget), Some(allowance)) = (guard.budget(), &mut plain.budget) {
                (0..script.others).for_each(|_| budget.first_attempt());
                (0..script.others).for_each(|_| allowance.first_attempt(plain.now));
            }
            let (expected, happened) = (plain.call(&script), make(&guard, &hands, &script));
            prop_assert_eq!(happened, expected, "call {}", number);
            if let (Some(breaker), Some(circuit)) = (guard.breaker(), &mut plain.circuit) {
                let (state, place) = (breaker.state(), circuit.look(plain.now));
                prop_assert!(same_circuit(state, place), "after call {number}: {state:?}, not {place:?}");
                prop_assert_eq!(breaker.probes_under_way(), 0);
            }
            if let (Some(budget), Some(allowance)) = (guard.budget(), &mut plain.budget) {
                prop_assert_eq!(budget.in_window(), allowance.in_window(plain.now), "after call {}", number);
                let is_allowed = allowance.try_take(plain.now);
                prop_assert_eq!(budget.try_spend().is_some(), is_allowed, "after call {}", number);
                if is_allowed {
                    allowance.give_back(plain.now);
                }
            }
            if let Some(gate) = guard.bulkhead() {
                prop_assert_eq!(gate.inside(), 0);
            }
        }
    }
}

/// A few seconds' worth; by hand as many as `PROPTEST_CASES` says.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

/// A model agrees with anything in what it never comes to: the scripts come to every end that a call can have, and to every
/// place that a circuit can be in.
#[test]
fn the_scripts_come_to_every_end() {
    use seawall::{Kind, Policy};

    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let cases = (parts(), prop::collection::vec(scripts(), 1..30));
    let (mut ends, mut places) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let (parts, scripts) = cases.new_tree(&mut runner).unwrap().current();
        let mut plain = Plain::new(&parts, 0);
        for script in scripts {
            plain.now += script.pause;
            let end = match plain.call(&parts.possible(script)).how {
                How::Badly { kind, by, .. } => Some((kind, by)),
                How::Well | How::Dropped => None,
            };
            ends.extend(end);
            let now = plain.now;
            places.extend(plain.circuit.as_mut().map(|circuit| circuit.look(now)));
        }
    }
    for end in [
        (Kind::Failed, Policy::Operation),
        (Kind::Failed, Policy::Retry),
        (Kind::Exhausted, Policy::Retry),
        (Kind::BudgetDenied, Policy::Budget),
        (Kind::TimedOut, Policy::CallTimeout),
        (Kind::TimedOut, Policy::AttemptTimeout),
        (Kind::Rejected, Policy::Breaker),
        (Kind::Rejected, Policy::RateLimit),
        (Kind::Rejected, Policy::Bulkhead),
    ] {
        let times = ends.iter().filter(|seen| **seen == end).count();
        assert!(times > 20, "{end:?} only {times} times");
    }
    for place in [Place::Closed, Place::Open, Place::HalfOpen] {
        let times = places.iter().filter(|seen| **seen == place).count();
        assert!(times > 20, "{place:?} only {times} times");
    }
}
