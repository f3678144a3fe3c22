//! What retries may cost a backend that is in trouble.

use std::cell::Cell;

use seawall::{Backoff, Budget, Fault, Guard, Retry, millis, secs};
use seawall_testkit::{ManualClock, run};

/// How many attempts reach a backend that fails every second call, in `seconds` at `rate` calls a second.
fn attempts(retry: Retry, clones: usize, seconds: u64, rate: u64) -> u64 {
    let hands = ManualClock::new();
    let retry = retry.backoff(Backoff::constant(millis(1)));
    let guard = Guard::builder("backend").retry(retry).clock(hands.clock()).seed(1).build().unwrap();
    let guards: Vec<_> = (0..clones).map(|_| guard.clone()).collect();
    let (calls, attempts) = (Cell::new(0_u64), Cell::new(0_u64));
    let pause = secs(1) / u32::try_from(rate).unwrap();
    for call in 0..seconds * rate {
        calls.set(call);
        let operation = async |_| {
            attempts.set(attempts.get() + 1);
            if calls.get().is_multiple_of(2) { Err(Fault::protocol()) } else { Ok(()) }
        };
        let _ = run(&hands, guards[call as usize % clones].idempotent().call(operation));
        hands.advance(pause);
    }
    attempts.get()
}

/// ENG-4. Trap "a retry budget that pays a whole token for each success": against a backend that fails half of its calls,
/// 10 000 calls make at most 11 000 attempts, plus the floor.
#[test]
fn eng_4_the_default_budget_bounds_the_load_on_a_failing_backend() {
    let seconds = 10;
    let with_floor = attempts(Retry::max_attempts(3), 1, seconds, 1_000);
    let floor = 3 * (seconds + 10);
    assert!(with_floor <= 11_000 + floor, "{with_floor} attempts");
    assert!(with_floor > 10_800, "the budget is there to be used: {with_floor} attempts");
    let without_floor = attempts(
        Retry::max_attempts(3).budget(Budget::share_of_calls(10).floor_per_second(0.0)),
        1,
        seconds,
        1_000,
    );
    assert!((10_900..=11_000).contains(&without_floor), "{without_floor} attempts");
}

/// ENG-4: a fresh guard retries what fails: the floor pays for fifteen calls of three attempts at once, and then for three
/// retries a second.
#[test]
fn eng_4_a_fresh_guard_has_thirty_retries_at_once() {
    let hands = ManualClock::new();
    let retry = Retry::max_attempts(3).backoff(Backoff::constant(millis(1)).no_jitter());
    let guard = Guard::builder("backend").retry(retry).clock(hands.clock()).build().unwrap();
    let attempts = || {
        let result = run(&hands, guard.idempotent().call(async |_| Err::<(), _>(Fault::io())));
        result.unwrap_err().attempts()
    };
    assert_eq!((0..15).map(|_| attempts()).sum::<u32>(), 45);
    assert_eq!((0..15).map(|_| attempts()).sum::<u32>(), 15, "the floor is spent");
    hands.advance(secs(1));
    assert_eq!((0..15).map(|_| attempts()).sum::<u32>(), 15 + 3);
}

/// ENG-4. Trap "budget per clone": N clones have one budget.
#[test]
fn eng_4_clones_share_one_budget() {
    let budget = || Retry::max_attempts(3).budget(Budget::share_of_calls(10).floor_per_second(0.0));
    assert_eq!(attempts(budget(), 16, 10, 1_000), attempts(budget(), 1, 10, 1_000));
}

/// ENG-4: without a budget the same outage costs the backend twice the load: what the budget is for.
#[test]
fn eng_4_without_a_budget_every_failed_call_is_tried_to_the_end() {
    assert_eq!(attempts(Retry::max_attempts(3).no_budget(), 1, 10, 1_000), 20_000);
}

/// ENG-4: gRPC's form stops retrying when half of the bucket is gone.
#[test]
fn eng_4_the_token_bucket_bounds_the_load_too() {
    let attempts =
        attempts(Retry::max_attempts(3).budget(Budget::tokens(10.0).token_ratio(0.1)), 1, 10, 1_000);
    assert!((10_003..10_020).contains(&attempts), "{attempts} attempts");
}
