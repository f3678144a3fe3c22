//! Everything that a call can bring along, in every combination, and per call.

use std::cell::RefCell;
use std::future::pending;

use seawall::fallback::{FallbackFilter, LastGood};
use seawall::{Attempt, Breaker, Class, Error, Fault, Guard, Hedge, Kind, Policy, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

/// ENG-16: the order in which extras are asked for does not matter, and none hides another.
#[test]
fn eng_16_extras_combine_in_any_order() {
    let hands = ManualClock::new();
    let guard = Guard::builder("peer")
        .clock(hands.clock())
        .retry(Retry::max_attempts(2).no_budget())
        .hedge(Hedge::after(secs(5)))
        .build()
        .unwrap();
    // For blocking code, in which nobody moves a clock by hand.
    let zero = Retry::max_attempts(2).backoff(seawall::Backoff::constant(millis(0))).no_budget();
    let at_once = Guard::builder("peer").retry(zero).build().unwrap();
    let judge = |result: &Result<u32, Fault>| result.as_ref().err().copied();
    let letters = RefCell::new(0);
    let keep = |_: &Error<Fault>| *letters.borrow_mut() += 1;
    let last = LastGood::new();
    let when = || FallbackFilter::classes([Class::Io]);
    let failing = |_: Attempt| std::future::ready(Err(Fault::io()));
    let all = [
        run(
            &hands,
            guard
                .idempotent()
                .hedged()
                .classify(judge)
                .or_value(1)
                .when(when())
                .dead_letter(keep)
                .call(failing),
        ),
        run(
            &hands,
            guard
                .idempotent()
                .or_value(1)
                .dead_letter(keep)
                .when(when())
                .classify(judge)
                .hedged()
                .call(failing),
        ),
        run(
            &hands,
            guard
                .classify(judge)
                .dead_letter(keep)
                .hedged()
                .or_value(1)
                .when(when())
                .idempotent()
                .call(failing),
        ),
        run(
            &hands,
            guard.idempotent().when(when()).or_last_good(&last).or_value(1).dead_letter(keep).call(failing),
        ),
        run(
            &hands,
            guard
                .keyed()
                .about("A-7")
                .operation("read")
                .or_try(|_: &Error<Fault>| Err::<u32, ()>(()))
                .or_else(|error: &Error<Fault>| error.attempts() - 1)
                .dead_letter(keep)
                .call(failing),
        ),
        at_once
            .idempotent()
            .or_last_good(&last)
            .or_value(1)
            .when(when())
            .dead_letter(keep)
            .run(|_| Err(Fault::io())),
    ];
    for answer in all {
        let answer = answer.unwrap();
        assert_eq!((*answer, answer.instead_of().unwrap().attempts()), (1, 2));
    }
    assert_eq!(letters.into_inner(), 6);
    assert_eq!(last.get(), None);
}

/// ENG-7: an attempt timeout per call, longer or shorter than the guard's, in a guard that has none, and in blocking code.
#[test]
fn eng_7_a_call_has_its_own_attempt_timeout() {
    let hands = ManualClock::new();
    let timed = |own: Option<u64>, per_call: Option<u64>| {
        let mut builder = Guard::builder("peer").clock(hands.clock()).no_retry().call_timeout(secs(60));
        if let Some(own) = own {
            builder = builder.attempt_timeout(millis(own));
        }
        let guard = builder.build().unwrap();
        let mut request = guard.idempotent();
        if let Some(per_call) = per_call {
            request = request.attempt_timeout(millis(per_call));
        }
        let began = hands.now();
        let error = run(&hands, request.call(|_| pending::<Result<u32, Fault>>())).unwrap_err();
        assert_eq!(error.kind(), Kind::TimedOut);
        (hands.now().since(began), error.decided_by())
    };
    assert_eq!(timed(Some(1_000), None), (secs(1), Policy::AttemptTimeout));
    assert_eq!(timed(Some(1_000), Some(300)), (millis(300), Policy::AttemptTimeout));
    assert_eq!(timed(Some(1_000), Some(4_000)), (secs(4), Policy::AttemptTimeout));
    assert_eq!(timed(None, Some(7)), (millis(7), Policy::AttemptTimeout));
    assert_eq!(timed(None, Some(90_000)), (secs(60), Policy::CallTimeout));
    let guard = Guard::builder("disk").clock(hands.clock()).build().unwrap();
    let allowed =
        guard.idempotent().attempt_timeout(millis(250)).run(|attempt| Ok::<_, Fault>(attempt.time_allowed()));
    assert_eq!(allowed.unwrap(), Some(millis(250)));
}

/// ENG-16: an operation that borrows has everything that another has: retries, timeouts, places, the panic of its peer.
#[test]
fn eng_16_an_operation_that_borrows_has_all_policies() {
    let hands = ManualClock::new();
    let guard = Guard::builder("database")
        .clock(hands.clock())
        .attempt_timeout(secs(1))
        .retry(Retry::max_attempts(3).backoff(seawall::Backoff::constant(secs(1)).no_jitter()).no_budget())
        .breaker(Breaker::consecutive_failures(3))
        .bulkhead(seawall::Bulkhead::max_calls(1).max_wait(secs(1)))
        .build()
        .unwrap();
    let mut log = Vec::new();
    let result = run(
        &hands,
        guard.idempotent().call_on(&mut log, async |mut log, attempt| {
            log.push(attempt.number());
            match attempt.number() {
                1 => pending().await,
                2 => Err(Fault::io()),
                _ => Ok(log.len()),
            }
        }),
    );
    assert_eq!(result, Ok(3));
    let mut tries = 0;
    let error = run(
        &hands,
        guard.idempotent().call_on(&mut tries, async |mut tries, _| {
            *tries += 1;
            pending::<Result<u32, Fault>>().await
        }),
    );
    assert_eq!((error.unwrap_err().kind(), tries), (Kind::Exhausted, 3));
    let refused =
        run(&hands, guard.idempotent().call_on(&mut (), async |_, _| Ok::<u32, Fault>(1))).unwrap_err();
    assert_eq!((refused.kind(), refused.decided_by()), (Kind::Rejected, Policy::Breaker));
    guard.breaker().unwrap().reset("test");
    let place = guard.bulkhead().unwrap().try_enter().unwrap();
    let full =
        run(&hands, guard.idempotent().call_on(&mut (), async |_, _| Ok::<u32, Fault>(1))).unwrap_err();
    assert_eq!(full.decided_by(), Policy::Bulkhead);
    drop(place);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(
            &hands,
            guard
                .idempotent()
                .call_on(&mut (), async |_, _| -> Result<u32, Fault> { panic!("the driver is broken") }),
        )
    }));
    assert!(caught.is_err());
    assert_eq!((guard.breaker().unwrap().counts().panicked, guard.bulkhead().unwrap().inside()), (1, 0));
}
