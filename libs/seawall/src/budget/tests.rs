//! The arithmetic of the budget, and what many callers together may do.

mod floor;

use super::machine::{Bucket, Rules};
use super::*;
use crate::clock::Clock;
use crate::secs;
use crate::testing::Hands;
use std::sync::Arc;
use std::time::Duration;

fn bench(budget: Budget) -> (Arc<Hands>, RetryBudget) {
    let hands = Hands::new();
    let budget = budget.build_with(Clock::custom(hands.clone())).expect("a sound configuration");
    (hands, budget)
}

fn spend(budget: &RetryBudget) -> bool {
    budget.try_spend().map(Token::spend).is_some()
}

/// ENG-4: a share of the calls in the window, and not one more.
#[test]
fn eng_4_retries_are_a_share_of_the_calls() {
    let (_, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    assert!(!spend(&budget), "nothing was earned");
    (0..1_000).for_each(|_| budget.first_attempt());
    assert_eq!((0..1_000).filter(|_| spend(&budget)).count(), 100);
    assert_eq!((budget.in_window(), budget.denied()), ((1_000, 100), 901));
}

/// ENG-4: what was earned and spent is forgotten when the window has passed.
#[test]
fn eng_4_the_window_slides() {
    let (hands, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    (0..1_000).for_each(|_| budget.first_attempt());
    hands.advance(secs(11));
    assert!(!spend(&budget), "what was earned 11 s ago is gone");
    (0..100).for_each(|_| budget.first_attempt());
    assert_eq!((0..100).filter(|_| spend(&budget)).count(), 10);
}

/// ENG-4: a token is given back if the attempt never started.
#[test]
fn eng_4_a_token_that_was_not_spent_goes_back() {
    let (_, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    (0..10).for_each(|_| budget.first_attempt());
    for _ in 0..100 {
        let token = budget.try_spend().expect("one is there");
        assert!(budget.try_spend().is_none(), "and only one");
        drop(token);
    }
    assert!(spend(&budget));
    assert!(!spend(&budget));
}

/// ENG-4. Trap "check-then-act": many threads together get what there is, once.
#[test]
fn eng_4_threads_share_one_budget() {
    let (_, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    let spent: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..1_000).for_each(|_| budget.first_attempt());
                    (0..1_000).filter(|_| spend(&budget)).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(spent <= 800, "{spent} of 800");
    let rest = (0..1_000).filter(|_| spend(&budget)).count();
    assert_eq!(spent + rest, 800);
}

/// ENG-4: gRPC's token bucket: failures take, first attempts that succeed give, above half retries are allowed.
#[test]
fn eng_4_the_token_bucket_of_grpc() {
    let (_, budget) = bench(Budget::tokens(10.0).token_ratio(0.5));
    for _ in 0..4 {
        budget.failed();
        assert!(spend(&budget));
    }
    budget.failed();
    assert!(!spend(&budget), "five of ten are left, which is not more than half");
    // Trap "a token returned on success of a retry": only first attempts earn.
    (0..100).for_each(|_| budget.succeeded(false));
    assert!(!spend(&budget));
    budget.succeeded(true);
    assert!(spend(&budget));
    (0..1_000).for_each(|_| budget.failed());
    (0..11).for_each(|_| budget.succeeded(true));
    assert!(spend(&budget), "from empty, eleven successes are more than half");
}

/// ENG-4. Trap "float drift": from every balance there is, no step leaves [0, max]. That holds for 10⁹ steps as for one.
#[test]
fn eng_4_no_step_leaves_the_bounds_from_any_balance() {
    for (max, ratio) in [(1.0, 0.001), (10.0, 0.1), (10.0, 1000.0), (1000.0, 0.333)] {
        let Rules::Bucket(bucket) = Budget::tokens(max).token_ratio(ratio).rules() else {
            unreachable!("it is one")
        };
        for tokens in 0..=bucket.max {
            assert!((tokens..=bucket.max).contains(&bucket.after_success(tokens)));
            assert!(Bucket::after_failure(tokens) <= tokens);
        }
    }
}

/// ENG-11: a budget that never allows a retry is refused.
#[test]
fn eng_11_a_budget_below_one_retry_is_refused() {
    let wrong = |budget: Budget| budget.build().expect_err("it can't work").to_string();
    assert!(
        wrong(Budget::share_of_calls(0).floor_per_second(0.0)).contains("it never allows a single retry")
    );
    assert!(wrong(Budget::share_of_calls(120)).contains("120 % is not between 0 % and 100 %"));
    assert!(wrong(Budget::default().window(Duration::ZERO)).contains("is not between 100 ms and 1 h"));
    assert!(wrong(Budget::tokens(0.0).token_ratio(0.1)).contains("0 tokens are not between 1 and 1000"));
}

/// ENG-4: a change of settings keeps what was earned and spent.
#[test]
fn eng_4_new_settings_keep_the_window() {
    let (_, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    (0..100).for_each(|_| budget.first_attempt());
    assert_eq!((0..100).filter(|_| spend(&budget)).count(), 10);
    budget.reconfigure(&Budget::share_of_calls(15).floor_per_second(0.0)).expect("sound");
    assert_eq!((0..100).filter(|_| spend(&budget)).count(), 5);
}

/// ENG-4. A token that is held for longer than the window, as in a long back-off, is no present when it comes back.
#[test]
fn eng_4_a_token_held_for_long_pays_only_once() {
    let (hands, budget) = bench(Budget::share_of_calls(10).floor_per_second(0.0));
    (0..100).for_each(|_| budget.first_attempt());
    let held: Vec<_> = (0..10).filter_map(|_| budget.try_spend()).collect();
    hands.advance(secs(30));
    (0..100).for_each(|_| budget.first_attempt());
    assert_eq!((0..100).filter(|_| spend(&budget)).count(), 10);
    drop(held);
    assert!(!spend(&budget), "what came back had long been forgotten");
}

/// ENG-4, ENG-12: a bucket stays as full as it was, as gRPC has it: one that is made larger in good times allows what it
/// allowed, and one that is made smaller in bad times does not.
#[test]
fn eng_12_a_bucket_of_another_size_is_as_full() {
    let (_, budget) = bench(Budget::tokens(10.0).token_ratio(0.1));
    budget.reconfigure(&Budget::tokens(100.0).token_ratio(0.1)).expect("sound");
    assert!(spend(&budget), "a full bucket is full");
    (0..60).for_each(|_| budget.failed());
    assert!(!spend(&budget));
    budget.reconfigure(&Budget::tokens(10.0).token_ratio(0.1)).expect("sound");
    assert!(!spend(&budget), "a spent bucket is spent");
}

/// ENG-4: tokens survive a change of settings, whatever form they were taken in.
#[test]
fn eng_4_tokens_outlive_a_change_of_settings() {
    let (_, budget) = bench(Budget::tokens(10.0).token_ratio(0.1));
    let token = budget.try_spend().expect("the bucket is full");
    budget.reconfigure(&Budget::share_of_calls(10).floor_per_second(1.0)).expect("sound");
    drop(token);
    assert!(spend(&budget), "the floor, and nothing has wrapped");
    assert_eq!(budget.in_window().1, 1);
    (0..5).for_each(|_| budget.failed());
    budget.reconfigure(&Budget::tokens(4.0).token_ratio(0.1)).expect("sound");
    assert!(spend(&budget), "a bucket that is new starts full");
    budget.failed();
    budget.failed();
    budget.reconfigure(&Budget::tokens(2.0).token_ratio(0.1)).expect("sound");
    assert!(!spend(&budget), "a bucket that is half full stays half full");
    budget.reconfigure(&Budget::share_of_calls(10).window(secs(20))).expect("sound");
    assert_eq!(budget.in_window(), (0, 0), "a window of another length starts empty");
}
