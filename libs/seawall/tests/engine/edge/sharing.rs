//! Circuits and budgets that several guards share, and waits that a function decides.

use std::sync::{Arc, Mutex};

use seawall::breaker::State;
use seawall::{Attempt, Breaker, Budget, Clock, Fault, Guard, Kind, Policy, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

fn fails(_: Attempt) -> std::future::Ready<Result<u32, Fault>> {
    std::future::ready(Err(Fault::io()))
}

/// ENG-16, ENG-5: a circuit that two guards share opens for both by what either sees, also across a change of settings.
#[test]
fn eng_16_a_circuit_is_shared_by_several_guards() {
    let hands = ManualClock::new();
    let circuit = Arc::new(Breaker::consecutive_failures(4).build_with(hands.clock()).unwrap());
    let builder =
        |name: &str| Guard::builder(name).clock(hands.clock()).no_retry().shared_breaker(circuit.clone());
    let (reads, writes) = (builder("reads").build().unwrap(), builder("writes").build().unwrap());
    for guard in [&reads, &writes, &reads, &writes] {
        assert_eq!(run(&hands, guard.idempotent().call(fails)).unwrap_err().kind(), Kind::Failed);
    }
    assert_eq!(circuit.state(), State::Open);
    for guard in [&reads, &writes] {
        assert_eq!(run(&hands, guard.idempotent().call(fails)).unwrap_err().decided_by(), Policy::Breaker);
        assert!(guard.explain().contains("opens after 4 failures in a row"));
    }
    writes.reconfigure(Guard::builder("writes").no_retry()).unwrap();
    assert_eq!(circuit.state(), State::Open, "the other guard still has it");
    assert!(writes.breaker().is_none());
    let own = Guard::builder("own").clock(hands.clock()).breaker(Breaker::default()).build().unwrap();
    let borrowed =
        Guard::builder("b").clock(hands.clock()).shared_breaker(own.breaker().unwrap().clone()).build();
    assert!(borrowed.is_ok(), "the circuit of a guard can be shared too");
}

/// ENG-16, ENG-4: a budget that two guards share bounds both together.
#[test]
fn eng_16_a_budget_is_shared_by_several_guards() {
    let hands = ManualClock::new();
    let tokens = Arc::new(Budget::tokens(4.0).token_ratio(0.1).build_with(hands.clock()).unwrap());
    let build = |name: &str| {
        let retry = Retry::max_attempts(3).backoff(seawall::Backoff::constant(millis(1)));
        Guard::builder(name).clock(hands.clock()).retry(retry).shared_budget(tokens.clone()).build().unwrap()
    };
    let (a, b) = (build("a"), build("b"));
    assert_eq!(
        run(&hands, a.idempotent().call(fails)).unwrap_err().attempts(),
        2,
        "two failures leave half of the bucket"
    );
    let denied = run(&hands, b.idempotent().call(fails)).unwrap_err();
    assert_eq!((denied.kind(), denied.attempts()), (Kind::BudgetDenied, 1), "the other guard has spent it");
    assert!(tokens.denied() >= 2);
}

/// ENG-11: what is shared must go by the guard's clock.
#[test]
fn eng_11_a_shared_part_on_another_clock_is_refused() {
    let hands = ManualClock::new();
    let circuit = Arc::new(Breaker::default().build_with(Clock::system()).unwrap());
    let budget = Arc::new(Budget::default().build_with(Clock::system()).unwrap());
    let wrong =
        Guard::builder("g").clock(hands.clock()).shared_breaker(circuit).shared_budget(budget).build();
    let text = wrong.unwrap_err().to_string();
    assert!(
        text.contains("breaker: it goes by another clock")
            && text.contains("retry.budget: it goes by another"),
        "{text}"
    );
}

/// ENG-2, ENG-16: a function decides how long to wait; it is told which retry comes, why, and what the wait before was.
#[test]
fn eng_16_a_function_decides_how_long_to_wait() {
    let hands = ManualClock::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let retry = Retry::max_attempts(4).no_budget().delay(move |failed| {
        told.lock().unwrap().push((failed.retry, failed.fault, failed.previous));
        secs(2) * failed.retry
    });
    let guard = Guard::builder("g").clock(hands.clock()).retry(retry).call_timeout(secs(60)).build().unwrap();
    assert!(guard.explain().contains("4 attempts, waits by a function"), "{}", guard.explain());
    let began = hands.now();
    let error = run(&hands, guard.idempotent().call(fails)).unwrap_err();
    assert_eq!((error.kind(), error.attempts(), hands.now().since(began)), (Kind::Exhausted, 4, secs(12)));
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen, [(1, Fault::io(), secs(0)), (2, Fault::io(), secs(2)), (3, Fault::io(), secs(4))]);
}
