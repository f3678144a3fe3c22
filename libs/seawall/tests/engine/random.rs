//! Guards of random parts, calls of random outcomes, cancelled and delayed at random: what must hold, holds.

use std::cell::Cell;
use std::pin::Pin;
use std::task::Poll;

use proptest::prelude::*;
use seawall::breaker::{Scope, State};
use seawall::{
    Backoff, Breaker, Budget, Bulkhead, Error, Fault, Guard, Kind, Policy, Ran, RateLimit, Retry, Safety,
    Tick, fault, millis, secs,
};
use seawall_testkit::{ManualClock, Script, Step, poll_once};

/// Which parts a guard has.
#[derive(Clone, Debug)]
struct Parts {
    call_timeout: bool,
    attempt_timeout: bool,
    attempts: u32,
    budget: bool,
    on_rejection: bool,
    breaker: Option<(bool, Scope)>,
    rate_limit: Option<bool>,
    bulkhead: Option<(u32, u32)>,
}

const CALL_TIMEOUT: u64 = 5_000;
const ATTEMPT_TIMEOUT: u64 = 1_000;

impl Parts {
    fn build(&self, hands: &ManualClock) -> Guard {
        let mut builder = Guard::builder("random").clock(hands.clock()).seed(9);
        builder = if self.call_timeout {
            builder.call_timeout(millis(CALL_TIMEOUT))
        } else {
            builder.no_call_timeout()
        };
        if self.attempt_timeout {
            builder = builder.attempt_timeout(millis(ATTEMPT_TIMEOUT));
        }
        let mut retry = Retry::max_attempts(self.attempts).backoff(Backoff::exponential(millis(50)));
        retry = if self.budget {
            retry.budget(Budget::share_of_calls(20).floor_per_second(0.5))
        } else {
            retry.no_budget()
        };
        if self.on_rejection {
            retry = retry.on_rejection();
        }
        builder = builder.retry(retry);
        if let Some((by_rate, scope)) = self.breaker {
            let breaker = if by_rate {
                Breaker::failure_rate(50).over_time(secs(5)).minimum_calls(5)
            } else {
                Breaker::consecutive_failures(3)
            };
            builder = builder.breaker(breaker.cooldown(secs(1)).probe_timeout(secs(3)).scope(scope).seed(3));
        }
        if let Some(waits) = self.rate_limit {
            let limit = RateLimit::calls(20).burst(5);
            builder = builder.rate_limit(if waits { limit.max_wait(secs(1)) } else { limit });
        }
        if let Some((calls, waiting)) = self.bulkhead {
            let bulkhead = Bulkhead::max_calls(calls);
            builder = builder.bulkhead(if waiting > 0 {
                bulkhead.max_wait(millis(700)).max_waiting(waiting)
            } else {
                bulkhead
            });
        }
        builder.build().unwrap()
    }
}

fn parts() -> impl Strategy<Value = Parts> {
    let scope = prop_oneof![Just(Scope::Attempt), Just(Scope::Call)];
    let flags = any::<(bool, bool, bool, bool)>();
    let breaker = prop::option::of((any::<bool>(), scope));
    (flags, 1u32..5, breaker, prop::option::of(any::<bool>()), prop::option::of((1u32..4, 0u32..4))).prop_map(
        |((call_timeout, attempt_timeout, budget, on_rejection), attempts, breaker, rate_limit, bulkhead)| {
            Parts {
                call_timeout,
                attempt_timeout,
                attempts,
                budget,
                on_rejection,
                breaker,
                rate_limit,
                bulkhead,
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Act {
    /// A new call, whose attempts do this.
    Call(Safety, Vec<Step>),
    /// Time passes, up to the next timer or by so many milliseconds.
    Next,
    Wait(u64),
    /// One of the calls under way is dropped.
    Cancel(usize),
}

fn acts() -> impl Strategy<Value = Act> {
    let fault = prop_oneof![
        Just(Fault::io()),
        Just(Fault::unreachable()),
        Just(Fault::business()),
        Just(Fault::throttled()),
        Just(Fault::throttled().after(millis(300))),
        Just(Fault::protocol()),
        Just(Fault::system()),
    ];
    let step = prop_oneof![
        3 => Just(Step::Ok),
        3 => fault.clone().prop_map(Step::Fail),
        2 => (0u64..1_500).prop_map(|after| Step::OkAfter(millis(after))),
        2 => (0u64..1_500, fault).prop_map(|(after, fault)| Step::FailAfter(millis(after), fault)),
        1 => Just(Step::Hang),
        1 => Just(Step::Yield),
    ];
    let safety = prop_oneof![Just(Safety::Once), Just(Safety::Idempotent), Just(Safety::Keyed)];
    prop_oneof![
        6 => (safety, prop::collection::vec(step, 0..5)).prop_map(|(safety, steps)| Act::Call(safety, steps)),
        6 => Just(Act::Next),
        3 => (0u64..3_000).prop_map(Act::Wait),
        1 => (0usize..64).prop_map(Act::Cancel),
    ]
}

/// A call under way.
struct Under<'a> {
    future: Pin<Box<dyn Future<Output = Result<(), Error<Fault>>> + 'a>>,
    began: Tick,
    script: &'a Script,
    safety: Safety,
}

/// What must hold of a call that has ended.
fn check(
    parts: &Parts,
    call: &Under<'_>,
    result: &Result<(), Error<Fault>>,
    now: Tick,
) -> Result<(), TestCaseError> {
    let sent = u32::try_from(call.script.attempts()).unwrap();
    prop_assert!(sent <= parts.attempts, "{} attempts of {}", sent, parts.attempts);
    prop_assert_eq!(call.script.under_way(), 0, "the call has ended and its attempt has not");
    if parts.call_timeout {
        // Time moves in steps here, and a call is looked at after each: it may see its deadline a step late.
        prop_assert!(now.since(call.began) <= millis(CALL_TIMEOUT + 3_000));
    }
    let Err(error) = result else { return Ok(()) };
    prop_assert_eq!(error.attempts(), sent, "{}", error);
    if sent == 0 {
        prop_assert_eq!(error.ran(), Ran::No, "{}", error);
        prop_assert!(matches!(error.kind(), Kind::Rejected | Kind::TimedOut), "{}", error);
    }
    if call.safety == Safety::Once && sent > 1 {
        let told = call.script.told();
        prop_assert!(told.iter().all(|attempt| attempt.key() == told[0].key()));
    }
    match error.kind() {
        Kind::Rejected => prop_assert!(
            matches!(error.decided_by(), Policy::Breaker | Policy::RateLimit | Policy::Bulkhead),
            "{}",
            error
        ),
        // A refusal that is retried is a try too.
        Kind::Exhausted => prop_assert!(sent == parts.attempts || parts.on_rejection, "{}", error),
        Kind::BudgetDenied => prop_assert!(parts.budget, "{}", error),
        Kind::TimedOut => prop_assert!(parts.call_timeout || parts.attempt_timeout, "{}", error),
        _ => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// ENG-3 to ENG-8, ENG-11, PRM-3, PRM-4, PRM-6: whatever is in a guard and whatever happens to its calls: no more attempts
    /// than allowed, no more inside than the limit, retries within the budget, one probe at a time, errors that agree with
    /// what was sent; and when all calls have ended or were dropped, everything is back and the guard works.
    #[test]
    fn prm_4_random_guards_keep_their_promises(parts in parts(), script in prop::collection::vec(acts(), 1..60)) {
        let hands = ManualClock::new();
        let guard = parts.build(&hands);
        let scripts: Vec<Script> = script
            .iter()
            .filter_map(|act| match act {
                Act::Call(_, steps) => Some(Script::new(&hands, steps.iter().copied())),
                _ => None,
            })
            .collect();
        let (began, first_attempts) = (hands.now(), Cell::new(0_u64));
        let (mut next_script, mut calls) = (0, Vec::<Under<'_>>::new());
        for act in script {
            match act {
                Act::Call(safety, _) => {
                    let script = &scripts[next_script];
                    next_script += 1;
                    let first_attempts = &first_attempts;
                    let operation = move |attempt: seawall::Attempt| {
                        first_attempts.set(first_attempts.get() + u64::from(attempt.number() == 1));
                        script.attempt(attempt)
                    };
                    let future = Box::pin(guard.classify(fault::Causes).safety(safety).call(operation));
                    calls.push(Under { future, began: hands.now(), script, safety });
                }
                Act::Next => {
                    hands.advance_to_next();
                }
                Act::Wait(time) => hands.advance(millis(time)),
                Act::Cancel(index) => {
                    if !calls.is_empty() {
                        calls.swap_remove(index % calls.len());
                    }
                }
            }
            // Twice, because one that ends may make room for another.
            for _ in 0..2 {
                let mut index = 0;
                while index < calls.len() {
                    match poll_once(calls[index].future.as_mut()) {
                        Poll::Pending => index += 1,
                        Poll::Ready(result) => {
                            let call = calls.swap_remove(index);
                            check(&parts, &call, &result, hands.now())?;
                        }
                    }
                }
            }
            let running: usize = scripts.iter().map(Script::under_way).sum();
            if let (Some(gate), Some((limit, waiting))) = (guard.bulkhead(), parts.bulkhead) {
                prop_assert!(running <= limit as usize && gate.inside() <= limit, "{} run, {} may", running, limit);
                prop_assert!(gate.waiting() <= waiting as usize);
                prop_assert!(gate.inside() as usize >= running);
            }
            if let Some(breaker) = guard.breaker() {
                prop_assert!(breaker.probes_under_way() <= 1);
            }
        }
        let sent: u64 = scripts.iter().map(|script| script.attempts() as u64).sum();
        if parts.budget && parts.attempts > 1 {
            let seconds = hands.now().since(began).as_secs_f64() + 10.0;
            let allowed = first_attempts.get() as f64 * 0.2 + 0.5 * seconds + 1.0;
            let retries = sent - first_attempts.get();
            prop_assert!(retries as f64 <= allowed, "{} retries, {} allowed", retries, allowed);
        }
        if parts.rate_limit.is_some() {
            let allowed = 5.0 + 20.0 * hands.now().since(began).as_secs_f64();
            prop_assert!(sent as f64 <= allowed + 1.0, "{} sent, {} allowed", sent, allowed);
        }

        calls.clear();
        prop_assert_eq!(hands.sleepers_waiting(), 0, "a timer goes on");
        prop_assert_eq!(scripts.iter().map(Script::under_way).sum::<usize>(), 0, "an attempt goes on");
        if let Some(gate) = guard.bulkhead() {
            prop_assert_eq!((gate.inside(), gate.waiting()), (0, 0));
        }
        if let Some(breaker) = guard.breaker() {
            prop_assert_eq!(breaker.probes_under_way(), 0);
        }
        // A healthy peer is reached again, at the latest when every cooldown is over.
        hands.advance(secs(10));
        let answer = seawall_testkit::run(&hands, guard.idempotent().call(async |_| Ok::<_, Fault>(())));
        prop_assert!(answer.is_ok(), "{}", answer.unwrap_err());
        if let Some(breaker) = guard.breaker() {
            prop_assert_eq!(breaker.state(), State::Closed);
        }
    }
}
