use super::*;
use crate::fault::{Class, Fault, Ran, StatusSet};
use crate::{Backoff, millis, secs};
use std::time::Duration;

fn after(fault: Fault, safety: Safety, tries: u32, retry: &Retry) -> Result<(), GiveUp> {
    decide(Situation { fault, tries, safety, outer_retries: false }, &retry.settings)
}

/// ENG-3. Trap "timeout = unknown outcome": a non-idempotent call is not retried without an idempotency key.
#[test]
fn eng_3_what_may_have_run_is_retried_only_if_that_is_declared_safe() {
    let retry = Retry::max_attempts(3);
    for (ran, once) in
        [(Ran::No, Ok(())), (Ran::Yes, Err(GiveUp::Unsafe)), (Ran::Unknown, Err(GiveUp::Unsafe))]
    {
        let fault = Fault::io().ran(ran);
        assert_eq!(after(fault, Safety::Once, 1, &retry), once, "{ran:?}");
        assert_eq!(after(fault, Safety::Idempotent, 1, &retry), Ok(()), "{ran:?}");
        assert_eq!(after(fault, Safety::Keyed, 1, &retry), Ok(()), "{ran:?}");
    }
}

/// ENG-3: `max_attempts` includes the first try.
#[test]
fn eng_3_attempts_include_the_first() {
    let retry = Retry::max_attempts(3);
    let outcomes = [1, 2, 3, 4].map(|tries| after(Fault::io(), Safety::Idempotent, tries, &retry));
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(GiveUp::Exhausted), Err(GiveUp::Exhausted)]);
    assert_eq!(after(Fault::io(), Safety::Idempotent, 1, &Retry::max_attempts(1)), Err(GiveUp::Pointless));
}

/// ENG-3: what can't change, what nobody expected and what a policy refused is not retried.
#[test]
fn eng_3_permanent_faults_and_rejections_are_not_retried() {
    let retry = Retry::max_attempts(3);
    for fault in [Fault::business(), Fault::system(), Fault::rejected(), Fault::of_http(501).unwrap()] {
        assert_eq!(after(fault, Safety::Idempotent, 1, &retry), Err(GiveUp::Pointless), "{fault}");
    }
    assert_eq!(after(Fault::rejected(), Safety::Once, 1, &retry.on_rejection()), Ok(()));
}

/// ENG-1: overrides by status change retry only; `none` is the behaviour of those who never retry on a status.
#[test]
fn eng_1_status_overrides_decide_about_retries_only() {
    let of = |status| Fault::of_http(status).unwrap();
    let retried = |status, retry: &Retry| after(of(status), Safety::Idempotent, 1, retry).is_ok();
    let usual = Retry::max_attempts(3);
    assert!(retried(503, &usual) && retried(429, &usual) && !retried(404, &usual));
    let none = Retry::max_attempts(3).on_status(StatusSet::none());
    assert!(!retried(503, &none) && of(503).counts());
    assert!(
        after(Fault::io(), Safety::Idempotent, 1, &none).is_ok(),
        "faults without a status are as before"
    );
    let more = Retry::max_attempts(3).on_status("404,500-599".parse().unwrap());
    assert!(retried(404, &more) && retried(501, &more) && !retried(429, &more));
}

/// ENG-3: only the classes that were asked for.
#[test]
fn eng_3_classes_can_be_chosen() {
    let retry = Retry::max_attempts(3).on_classes([Class::Timeout]);
    assert!(after(Fault::timeout(), Safety::Idempotent, 1, &retry).is_ok());
    assert!(after(Fault::io(), Safety::Idempotent, 1, &retry).is_err());
}

/// ENG-3: does not multiply what a layer above already retries. Trap "retries at several layers multiply".
#[test]
fn eng_3_retries_can_be_left_to_an_outer_layer() {
    let situation =
        |outer_retries| Situation { fault: Fault::io(), tries: 1, safety: Safety::Idempotent, outer_retries };
    let retry = Retry::max_attempts(3).leave_to_outer();
    assert_eq!(decide(situation(true), &retry.settings), Err(GiveUp::Pointless));
    assert_eq!(decide(situation(false), &retry.settings), Ok(()));
    assert_eq!(decide(situation(true), &Retry::max_attempts(3).settings), Ok(()));
}

/// ENG-1, ENG-3: `Retry-After` is honoured but clamped, and not answered by everybody in the same instant.
#[test]
fn eng_3_the_wait_asked_for_is_honoured_up_to_the_cap() {
    let retry = Retry::max_attempts(3).backoff(Backoff::exponential(millis(100)));
    let asked = |seconds, random| {
        wait(Fault::throttled().after(secs(seconds)), 0, Duration::ZERO, random, &retry.settings)
    };
    for random in 0..1_000 {
        let waited = asked(5, random);
        assert!((secs(5)..=millis(5_500)).contains(&waited), "{waited:?}");
        assert_eq!(asked(3_600, random), secs(60));
    }
    assert_ne!(asked(5, 1), asked(5, 2));
    assert!(asked(0, 7).is_zero());
    let endless = Fault::throttled().after(Duration::MAX);
    assert_eq!(wait(endless, 0, Duration::ZERO, 1, &retry.settings), secs(60));
}

/// ENG-3: HTTP has its default by method.
#[test]
fn eng_3_http_methods_have_a_default() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        assert_eq!(Safety::of_http_method(method), Safety::Idempotent, "{method}");
    }
    for method in ["POST", "PATCH", "CONNECT", "get", "FROBNICATE", ""] {
        assert_eq!(Safety::of_http_method(method), Safety::Once, "{method}");
    }
}
