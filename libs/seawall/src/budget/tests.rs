//! The arithmetic of the budget, and what many callers together may do.

use proptest::prelude::*;

use super::machine::{Bucket, Rules};
use super::*;
use crate::clock::Clock;
use crate::testing::Hands;
use crate::{millis, secs};
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

/// ENG-4: the floor is there for those who call seldom, as a rate: what a second brings at once, and so many a second.
#[test]
fn eng_4_the_floor_is_a_rate_for_those_who_call_seldom() {
    for (floor, at_once, in_100_s) in [(3.0, 3, 300), (1.0, 1, 100), (0.5, 1, 50), (0.02, 1, 2), (0.0, 0, 0)]
    {
        let (hands, budget) = bench(Budget::default().floor_per_second(floor));
        assert_eq!((0..1_000).filter(|_| spend(&budget)).count(), at_once, "at once, floor {floor}");
        let mut later = 0;
        for _ in 0..100_000 {
            hands.advance(millis(1));
            later += usize::from(spend(&budget));
        }
        // The steps of a millisecond are a little longer than the interval.
        assert!((in_100_s * 99 / 100..=in_100_s).contains(&later), "{later} in 100 s, floor {floor}");
    }
}

/// ENG-4: from 100 calls in the window on there is no floor, and what it paid for before counts against the share.
#[test]
fn eng_4_the_floor_ends_where_the_share_is_enough() {
    let (hands, budget) = bench(Budget::default());
    assert_eq!((0..10).filter(|_| spend(&budget)).count(), 3);
    (0..99).for_each(|_| budget.first_attempt());
    assert_eq!((0..100).filter(|_| spend(&budget)).count(), 6, "nine are the share of 99");
    hands.advance(secs(1));
    assert!(spend(&budget), "and the floor is there again");
    budget.first_attempt();
    assert!(!spend(&budget), "ten of a hundred are spent, and no floor");
    hands.advance(secs(5));
    assert!(!spend(&budget));
    hands.advance(secs(6));
    assert!(spend(&budget), "the calls have left the window");
}

/// ENG-4: what the floor paid for goes back to it, unless time has filled it up in the meantime.
#[test]
fn eng_4_a_token_of_the_floor_goes_back_to_the_floor() {
    let (hands, budget) = bench(Budget::default().floor_per_second(2.0));
    for _ in 0..100 {
        let both: Vec<_> = (0..9).filter_map(|_| budget.try_spend()).collect();
        assert_eq!(both.len(), 2);
    }
    let held = budget.try_spend().expect("they came back");
    hands.advance(secs(5));
    assert_eq!((0..9).filter(|_| spend(&budget)).count(), 2);
    drop(held);
    assert!(!spend(&budget), "the floor had been full again without it");
    assert_eq!(budget.in_window().1, 2);
}

/// An outage in which every attempt fails and every call wants two retries, for 50 processes with 20 calls a second each.
/// Gives calls and attempts of each second.
fn outage(warm: bool) -> Vec<(usize, usize)> {
    let hands = Hands::new();
    let clock = Clock::custom(hands.clone());
    let budgets: Vec<_> =
        (0..50).map(|_| Budget::default().build_with(clock.clone()).expect("sound")).collect();
    let second = |outage: bool| {
        let (mut calls, mut attempts) = (0, 0);
        for _ in 0..20 {
            hands.advance(millis(50));
            for budget in &budgets {
                budget.first_attempt();
                let retries = if outage { (0..2).take_while(|_| spend(budget)).count() } else { 0 };
                (calls, attempts) = (calls + 1, attempts + 1 + retries);
            }
        }
        (calls, attempts)
    };
    if warm {
        (0..30).for_each(|_| _ = second(false));
    }
    (0..60).map(|_| second(true)).collect()
}

/// ENG-4. Trap "50 processes with the default budget at 20 calls a second each stay below 1.1 times in an outage".
#[test]
fn eng_4_fifty_processes_stay_below_the_bound_in_an_outage() {
    for warm in [false, true] {
        let seconds = outage(warm);
        let within_bound = |seconds: &[(usize, usize)]| {
            let sum = |part: fn(&(usize, usize)) -> usize| seconds.iter().map(part).sum::<usize>();
            let (calls, attempts) = (sum(|second| second.0), sum(|second| second.1));
            assert!(attempts * 10 <= calls * 11, "{attempts} attempts for {calls} calls, warm: {warm}");
        };
        assert!(seconds.iter().any(|(calls, attempts)| attempts > calls), "some are retried");
        within_bound(&seconds);
        if warm {
            seconds.windows(10).for_each(within_bound);
        }
    }
}

/// ENG-4: a process with one call a second has its retries.
#[test]
fn eng_4_one_call_a_second_is_retried() {
    let (hands, budget) = bench(Budget::default());
    for _ in 0..100 {
        hands.advance(secs(1));
        budget.first_attempt();
        assert!(spend(&budget) && spend(&budget), "two retries for each");
    }
    assert_eq!(budget.denied(), 0);
}

/// ENG-4, ENG-11: the text says what the floor means.
#[test]
fn eng_4_the_text_says_when_the_floor_applies() {
    let (_, budget) = bench(Budget::default());
    assert_eq!(
        budget.explain(),
        "10 % of the calls of the last 10s; while those are fewer than 100 calls also 3 a second"
    );
    let (_, budget) = bench(Budget::default().floor_per_second(0.0));
    assert_eq!(budget.explain(), "10 % of the calls of the last 10s");
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

proptest! {
    /// ENG-4, PRM-6: whatever the calls, the pauses and the tokens given back: a retry is granted exactly if the share allows
    /// one more, or the floor does where it applies.
    #[test]
    fn prm_6_a_retry_is_granted_exactly_within_share_and_floor(
        share in 0u8..=100,
        floor in 0u32..20,
        script in prop::collection::vec((0u64..2_000, 0usize..40, 0usize..40, 0usize..4), 1..60),
    ) {
        prop_assume!(u32::from(share) + floor > 0);
        let (hands, budget) = bench(Budget::share_of_calls(share).floor_per_second(f64::from(floor)));
        // What the floor has, in retries.
        let (most, mut has) = (f64::from(floor.max(1)), f64::from(floor.max(1)));
        for (pause, calls, retries, unused) in script {
            hands.advance(millis(pause));
            has = (has + pause as f64 / 1e3 * f64::from(floor)).min(most);
            (0..calls).for_each(|_| budget.first_attempt());
            let by_share = |(seen, spent): (u64, u64)| (spent + 1) * 100 <= seen * u64::from(share);
            let mut of_floor = 0.0;
            let held: Vec<_> = (0..unused)
                .filter_map(|_| {
                    let shared = by_share(budget.in_window());
                    let token = budget.try_spend();
                    of_floor += f64::from(u8::from(token.is_some() && !shared));
                    token
                })
                .collect();
            has -= of_floor;
            for _ in 0..retries {
                let (seen, spent) = budget.in_window();
                let granted = spend(&budget);
                if by_share((seen, spent)) {
                    prop_assert!(granted);
                } else if floor == 0 || seen >= 100 {
                    prop_assert!(!granted);
                } else if granted {
                    has -= 1.0;
                    // Intervals are rounded to whole nanoseconds.
                    prop_assert!(has > -1e-3, "the floor had {has} before it");
                } else {
                    prop_assert!(has < 1.0 + 1e-3, "the floor has {has}");
                }
            }
            drop(held);
            has += of_floor;
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
