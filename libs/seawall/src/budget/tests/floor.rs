//! The floor for processes that call seldom, and how the share repays it.

use proptest::prelude::*;

use super::super::config::DEBT_LIFETIME;
use super::super::machine::{Debt, Floor};
use super::{Budget, RetryBudget, bench, spend};
use crate::clock::{Clock, Time, units};
use crate::testing::Hands;
use crate::{millis, secs};

/// In units.
const LIFETIME: u64 = units(DEBT_LIFETIME);

/// Makes this many calls a second for this long. Each call asks for `retries` retries until one is denied. Returns the number
/// of retries that were granted.
fn calls(hands: &Hands, budget: &RetryBudget, per_second: u32, seconds: u32, retries: usize) -> usize {
    let one = |_| {
        hands.advance(secs(1) / per_second);
        budget.first_attempt();
        (0..retries).take_while(|_| spend(budget)).count()
    };
    (0..per_second * seconds).map(one).sum()
}

/// Asks for `asked` retries at once, and returns the number of those that were granted.
fn granted(budget: &RetryBudget, asked: usize) -> usize {
    (0..asked).filter(|_| spend(budget)).count()
}

/// ENG-4: the floor is a rate for processes that call seldom. At once it pays for what a window brings: 30 by default.
#[test]
fn eng_4_a_cold_budget_allows_what_a_window_brings_at_once_and_then_the_rate() {
    for (floor, at_once, in_100_s) in
        [(3.0, 30, 300), (1.0, 10, 100), (0.5, 5, 50), (0.29, 2, 29), (0.02, 1, 2), (0.0, 0, 0)]
    {
        let (hands, budget) = bench(Budget::default().floor_per_second(floor));
        assert_eq!(granted(&budget, 1_000), at_once, "at once, floor {floor}");
        let mut later = 0;
        for _ in 0..100_000 {
            hands.advance(millis(1));
            later += usize::from(spend(&budget));
        }
        // The steps of a millisecond are a little longer than the interval.
        assert!((in_100_s * 99 / 100..=in_100_s).contains(&later), "{later} in 100 s, floor {floor}");
    }
}

/// ENG-4: the burst of the floor follows the window, and a rate that is no binary fraction is not rounded down.
#[test]
fn eng_4_the_burst_is_the_rate_times_the_window() {
    for (floor, window, at_once) in [(3.0, 1, 3), (3.0, 60, 180), (0.29, 100, 29), (0.7, 10, 7), (0.1, 30, 3)]
    {
        let (_, budget) = bench(Budget::default().floor_per_second(floor).window(secs(window)));
        assert_eq!(granted(&budget, 1_000), at_once, "{floor} a second, {window} s");
    }
}

/// ENG-4: from 100 calls in the window on there is no floor, and what it paid for before counts against the share.
#[test]
fn eng_4_the_floor_ends_where_the_share_is_enough() {
    let (hands, budget) = bench(Budget::default());
    (0..99).for_each(|_| budget.first_attempt());
    assert_eq!(granted(&budget, 100), 9 + 30, "nine are the share of 99, and the floor");
    hands.advance(secs(1));
    assert_eq!(granted(&budget, 100), 3, "the floor is a rate");
    budget.first_attempt();
    hands.advance(secs(1));
    assert_eq!(granted(&budget, 100), 0, "more than ten of a hundred are spent, and there is no floor");
    hands.advance(secs(11));
    assert_eq!(granted(&budget, 100), 30, "the calls have left the window, and nothing was repaid");
}

/// ENG-4: what the floor paid for goes back to it, unless time has filled it up in the meantime.
#[test]
fn eng_4_a_token_of_the_floor_goes_back_to_the_floor() {
    let (hands, budget) = bench(Budget::default().floor_per_second(2.0));
    for _ in 0..100 {
        let all: Vec<_> = (0..99).filter_map(|_| budget.try_spend()).collect();
        assert_eq!(all.len(), 20);
    }
    let held = budget.try_spend().expect("they came back");
    hands.advance(secs(5));
    assert_eq!(granted(&budget, 99), 20);
    drop(held);
    assert!(!spend(&budget), "the floor had been full again without it");
    assert_eq!(budget.in_window().1, 20);
}

/// ENG-4: a token of the floor that goes back takes its debt back too, so that the share has nothing to repay.
#[test]
fn eng_4_a_token_that_was_not_spent_leaves_no_debt() {
    let (_, budget) = bench(Budget::default());
    let mut held: Vec<_> = (0..99).filter_map(|_| budget.try_spend()).collect();
    assert_eq!(held.len(), 30);
    held.drain(..7).for_each(super::Token::spend);
    drop(held);
    (0..1_000).for_each(|_| budget.first_attempt());
    assert_eq!(granted(&budget, 1_000), 100 - 7 - 7, "seven were made, and seven are repaid");
}

/// ENG-4: a token that was taken while the debt was at its maximum has added nothing, and takes nothing back.
#[test]
fn eng_4_a_token_that_raised_no_debt_lowers_none() {
    let (hands, budget) = bench(Budget::default());
    assert_eq!(granted(&budget, 99), 30);
    hands.advance(secs(2));
    let held: Vec<_> = (0..99).filter_map(|_| budget.try_spend()).collect();
    assert_eq!(held.len(), 6);
    drop(held);
    (0..1_000).for_each(|_| budget.first_attempt());
    assert_eq!(granted(&budget, 1_000), 100 - 30 - 30);
}

/// ENG-4: a token that is held until its debt is forgotten does not lower the debt of others.
#[test]
fn eng_4_a_token_held_for_long_lowers_no_other_debt() {
    let (hands, budget) = bench(Budget::default());
    let held = budget.try_spend().expect("the floor");
    hands.advance(DEBT_LIFETIME + secs(1));
    assert_eq!(granted(&budget, 5), 5);
    drop(held);
    (0..1_000).for_each(|_| budget.first_attempt());
    assert_eq!(granted(&budget, 1_000), 100 - 5 - 5);
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
    assert_eq!(calls(&hands, &budget, 1, 100, 2), 200, "two retries for each");
    assert_eq!(budget.denied(), 0);
}

/// ENG-4: a process with five calls a second keeps its floor for ever: it repays nothing.
#[test]
fn eng_4_a_process_that_calls_seldom_keeps_its_floor_for_ever() {
    let (hands, budget) = bench(Budget::default());
    calls(&hands, &budget, 5, 60, 2);
    for ten_seconds in 0..360 {
        let granted = calls(&hands, &budget, 5, 10, 2);
        assert!((29..=31).contains(&granted), "{granted} in ten seconds, after {ten_seconds} times ten");
    }
}

/// ENG-4: a process that goes from seldom to busy within the minute repays what the floor paid for, as far as the share can, at
/// its next retry: each one that is repaid takes its place in the window. Where the share is enough nothing is denied.
#[test]
fn eng_4_a_process_that_becomes_busy_within_the_minute_repays() {
    let (hands, budget) = bench(Budget::default());
    calls(&hands, &budget, 5, 20, 2);
    // The retries of the floor leave the window, and nothing asks for one.
    calls(&hands, &budget, 50, 20, 0);
    let ((seen, spent), denied) = (budget.in_window(), budget.denied());
    assert!(seen > 350 && spent == 0, "{seen} calls and {spent} retries");
    let share = seen as usize / 10;
    assert_eq!((granted(&budget, 1), budget.denied() - denied), (1, 0));
    assert_eq!(budget.in_window().1, 30 + 1, "thirty are repaid, and count as retries");
    assert_eq!(granted(&budget, 1_000), share - 30 - 1);
    calls(&hands, &budget, 50, 20, 0);
    let share = budget.in_window().0 as usize / 10;
    assert_eq!(granted(&budget, 1_000), share, "the debt is repaid once");
}

/// ENG-4: what the share can't repay at once it repays with the next calls, and until then it grants nothing.
#[test]
fn eng_4_a_debt_that_the_share_can_not_repay_at_once() {
    let (_, budget) = bench(Budget::default());
    assert_eq!(granted(&budget, 99), 30);
    (0..500).for_each(|_| budget.first_attempt());
    // The thirty of the floor are in the window: the share of 500 has room for twenty more.
    assert_eq!((granted(&budget, 5), budget.in_window().1), (0, 50));
    (0..110).for_each(|_| budget.first_attempt());
    assert_eq!((granted(&budget, 5), budget.in_window().1), (1, 61), "the last ten, and one is left");
}

/// ENG-4: a process that called seldom a while ago, and whose retries the floor paid for, is denied nothing when it becomes
/// busy with 1 % failures: the debt is forgotten.
#[test]
fn eng_4_an_old_debt_is_forgotten() {
    for pause in [DEBT_LIFETIME, secs(3_600)] {
        let (hands, budget) = bench(Budget::default());
        calls(&hands, &budget, 5, 60, 2);
        let denied = budget.denied();
        hands.advance(pause);
        for _ in 0..60 {
            // About a hundred calls a second, of which one fails and is retried.
            calls(&hands, &budget, 100, 1, 0);
            assert!(spend(&budget), "one in a hundred, {pause:?} later");
        }
        assert_eq!(budget.denied(), denied);
    }
}

/// ENG-4, ENG-11: the text says what the floor means.
#[test]
fn eng_4_the_text_says_when_the_floor_applies() {
    let (_, budget) = bench(Budget::default());
    assert_eq!(
        budget.explain(),
        "10 % of the calls of the last 10s; while those are fewer than 100 calls also 3 a second, up to 30 at once, \
         which the share repays later"
    );
    let (_, budget) = bench(Budget::default().floor_per_second(0.0));
    assert_eq!(budget.explain(), "10 % of the calls of the last 10s");
}

proptest! {
    /// ENG-4, PRM-6: whatever the calls, the pauses and the tokens given back: a retry is granted exactly if the share allows
    /// one more than it has to repay, or the floor does where it applies.
    #[test]
    fn prm_6_a_retry_is_granted_exactly_within_share_and_floor(
        share in 0u8..=100,
        floor in 0u32..20,
        script in prop::collection::vec(
            (prop_oneof![9 => 0u64..2_000, 1 => 50_000u64..70_000], 0usize..40, 0usize..40, 0usize..4), 1..60),
    ) {
        prop_assume!(u32::from(share) + floor > 0);
        let (hands, budget) = bench(Budget::share_of_calls(share).floor_per_second(f64::from(floor)));
        // What the floor has, and what it is owed, in retries.
        let most = (floor * 10).max(1);
        let (mut has, mut debt, mut last) = (f64::from(most), 0, 0);
        for (pause, calls, retries, unused) in script {
            hands.advance(millis(pause));
            let now = hands.now().as_units();
            has = (has + pause as f64 / 1e3 * f64::from(floor)).min(f64::from(most));
            if now - last >= LIFETIME {
                debt = 0;
            }
            (0..calls).for_each(|_| budget.first_attempt());
            let (mut held, mut held_of_floor, mut held_debt) = (Vec::new(), 0.0, 0);
            for number in 0..unused + retries {
                let (seen, spent) = budget.in_window();
                let token = budget.try_spend();
                let is_granted = token.is_some();
                let (debt_before, mut by_floor) = (debt, 0.0);
                let room = (seen * u64::from(share) / 100).saturating_sub(spent);
                if room > 0 {
                    let repaid = if seen >= 100 { room.min(u64::from(debt)) } else { 0 };
                    debt -= u32::try_from(repaid).unwrap();
                    prop_assert_eq!(is_granted, room > repaid);
                    let taken = repaid + u64::from(is_granted);
                    prop_assert_eq!(budget.in_window().1, spent + taken, "what is repaid takes its place");
                } else if floor == 0 || seen >= 100 {
                    prop_assert!(!is_granted);
                } else if is_granted {
                    (has, by_floor) = (has - 1.0, 1.0);
                    (debt, last) = (most.min(debt + 1), now);
                    // Intervals are rounded to whole nanoseconds.
                    prop_assert!(has > -1e-3, "the floor had {has} before it");
                } else {
                    prop_assert!(has < 1.0 + 1e-3, "the floor has {has}");
                }
                if number < unused {
                    held_of_floor += by_floor;
                    held_debt += debt.saturating_sub(debt_before);
                    held.extend(token);
                } else if let Some(token) = token {
                    token.spend();
                }
            }
            drop(held);
            has += held_of_floor;
            debt = debt.saturating_sub(held_debt);
        }
    }

    /// ENG-4: the word of a debt is the count and the time of the last retry that the floor paid for, and nothing else: from
    /// any time on, also where the time wraps.
    #[test]
    fn eng_4_the_word_of_a_debt_counts_and_forgets(
        start in prop_oneof![0u64..1 << 20, (1u64 << 40) - 200_000..(1 << 40) + 10, any::<u32>().prop_map(u64::from)],
        per_second in 0.1f64..10.0,
        script in prop::collection::vec((prop_oneof![0u64..20, 0u64..70_000], any::<bool>()), 1..100),
    ) {
        let floor = Floor::new(per_second, secs(10)).expect("a rate above zero");
        let (mut debt, mut plain, mut now) = (Debt::from_word(0), (0, start), start);
        for (pause, is_paid_by_floor) in script {
            now += pause;
            if now - plain.1 >= LIFETIME {
                plain.0 = 0;
            }
            if is_paid_by_floor {
                debt = debt.after_floor_paid(now, LIFETIME, floor);
                plain = ((plain.0 + 1).min(floor.burst_retries()), now);
                prop_assert_eq!(debt.count(now.saturating_sub(5), LIFETIME), plain.0, "a thread that is a little late sees it");
            } else {
                let after = debt.after_repayment(now, LIFETIME);
                prop_assert_eq!(after.is_some(), plain.0 > 0);
                (debt, plain.0) = (after.unwrap_or(debt), plain.0.saturating_sub(1));
            }
            prop_assert_eq!(debt.count(now, LIFETIME), plain.0);
            prop_assert_eq!(Debt::from_word(debt.word()), debt);
        }
    }
}

/// ENG-4: a floor without any practical bound fills the count of a debt, and does not run into its time.
#[test]
fn eng_4_the_count_of_a_debt_has_a_bound() {
    let floor = Floor::new(1e6, secs(3_600)).expect("a rate above zero");
    let full = Debt::from_word((7 << 24) | 0xFF_FFFF);
    assert_eq!(full.after_floor_paid(7, LIFETIME, floor), full);
    assert_eq!(full.after_repayment(7, LIFETIME).map(Debt::word), Some(full.word() - 1));
    assert_eq!(full.count(7 + LIFETIME, LIFETIME), 0);
}
