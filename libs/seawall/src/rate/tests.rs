//! The bucket against a plain count of calls.

use proptest::prelude::*;

use super::machine::{Rules, Turn, convert, give_back, take};
use super::*;
use crate::clock::Clock;
use crate::{millis, secs};
use std::sync::Arc;
use std::time::Duration;

fn limiter(limit: RateLimit) -> (Arc<crate::testing::Hands>, RateLimiter) {
    let hands = crate::testing::Hands::new();
    let limiter = limit.build_with(Clock::custom(hands.clone())).expect("a sound configuration");
    (hands, limiter)
}

/// ENG-8: a burst at once, then one call each interval.
#[test]
fn eng_8_a_burst_and_then_the_rate() {
    let (hands, limiter) = limiter(RateLimit::calls(10).burst(5));
    let passed = |n: u32| (0..n).filter(|_| limiter.try_acquire().is_ok()).count();
    assert_eq!(passed(20), 5);
    hands.advance(millis(99));
    assert_eq!(passed(20), 0);
    hands.advance(millis(1));
    assert_eq!(passed(20), 1);
    hands.advance(secs(3_600));
    assert_eq!(passed(20), 5, "a pause earns a burst and no more");
    assert_eq!(limiter.limited(), 15 + 20 + 19 + 15);
}

/// ENG-8: a refusal says when to come back, and coming back then is in time, to the nanosecond.
#[test]
fn eng_8_coming_back_when_told_is_in_time() {
    for calls in [1, 3, 7, 999, 1_000_000] {
        let (hands, limiter) = limiter(RateLimit::calls(calls).burst(2));
        (0..2).for_each(|_| limiter.try_acquire().expect("the burst"));
        for _ in 0..100 {
            let wait = limiter.try_acquire().expect_err("above the limit").retry_after();
            hands.advance(wait - Duration::from_nanos(1));
            assert!(limiter.try_acquire().is_err(), "a nanosecond early");
            hands.advance(Duration::from_nanos(1));
            limiter.try_acquire().expect("in time");
        }
    }
}

/// ENG-8: whoever may wait gets a turn, in order, and one that is not used is given back.
#[test]
fn eng_8_turns_are_handed_out_in_order_and_can_be_given_back() {
    let (hands, limiter) = limiter(RateLimit::calls(10).burst(1).max_wait(millis(250)));
    let start = crate::Time::now(&*hands);
    let waits = |turn: &Reservation<'_>| turn.at().map(|at| at.since(start));
    let now = limiter.reserve().expect("now");
    let (first, second) = (limiter.reserve().expect("a turn"), limiter.reserve().expect("a turn"));
    assert_eq!([waits(&now), waits(&first), waits(&second)], [None, Some(millis(100)), Some(millis(200))]);
    assert_eq!(limiter.reserve().expect_err("300 ms is too long").retry_after(), millis(300));
    drop(second);
    assert_eq!(waits(&limiter.reserve().expect("the turn that was given back")), Some(millis(200)));
    hands.advance(millis(100));
    first.used();
    assert!(limiter.try_acquire().is_err(), "the turn was used");
}

proptest! {
    /// ENG-8: over every span of time, no more calls than the burst and what the rate allows in it; and none fewer, where
    /// callers come all the time.
    #[test]
    fn eng_8_no_span_holds_more_than_burst_and_rate(
        calls in 1u32..2_000,
        period_ms in 1u64..5_000,
        burst in 1u32..50,
        script in prop::collection::vec((0u64..3_000_000, 1u32..20), 1..200),
    ) {
        let rules = Rules::new(calls, millis(period_ms), burst);
        prop_assume!(rules.interval_nanos() >= 10);
        let (mut due, mut now) = (0, 0);
        let mut passed: Vec<u64> = Vec::new();
        for (pause, tries) in script {
            now += pause;
            for _ in 0..tries {
                match take(due, now, 1, &rules) {
                    (next, Turn::Now) => {
                        due = next;
                        passed.push(now);
                    }
                    (_, Turn::After(wait)) => {
                        prop_assert!(wait > 0);
                        prop_assert_eq!(take(due, now + wait, 1, &rules).1, Turn::Now);
                        prop_assert!(take(due, now + wait - 1, 1, &rules).1 != Turn::Now);
                    }
                }
            }
        }
        let per_nano = f64::from(calls) / millis(period_ms).as_nanos() as f64;
        for (first, &from) in passed.iter().enumerate() {
            for (last, &to) in passed.iter().enumerate().skip(first) {
                let allowed = f64::from(burst) + (to - from) as f64 * per_nano;
                prop_assert!((last - first + 1) as f64 <= allowed + 1e-3, "{} in {} ns", last - first + 1, to - from);
            }
        }
    }

    #[test]
    fn giving_back_undoes_taking(due in 0u64..1 << 60, calls in 1u32..1_000_000) {
        let rules = Rules::new(calls, secs(1), 5);
        let (next, _) = take(due, due >> 4, 1, &rules);
        prop_assert!(give_back(next, 1, &rules) >= due && give_back(next, 1, &rules) - due < 16);
    }
}

/// ENG-8: threads together pass no more than one alone would.
#[test]
fn eng_8_threads_share_one_bucket() {
    let (_, limiter) = limiter(RateLimit::calls(1_000).burst(777));
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..1_000).filter(|_| limiter.try_acquire().is_ok()).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 777);
}

/// ENG-11: limits that can't work are refused.
#[test]
fn eng_11_a_limit_that_cannot_work_is_refused() {
    let wrong = |limit: RateLimit| limit.build().expect_err("it can't work").to_string();
    assert!(wrong(RateLimit::calls(0)).contains("0 calls would refuse everything"));
    assert!(wrong(RateLimit::calls(5).burst(0)).contains("1 spaces the calls evenly"));
    assert!(wrong(RateLimit::calls(5).per(Duration::ZERO)).contains("is not between 1 ms and a day"));
    assert!(wrong(RateLimit::calls(u32::MAX).per(millis(1))).contains("more than any machine makes"));
}

/// ENG-8: a change of the limit keeps what is spent.
#[test]
fn eng_8_a_new_limit_keeps_what_is_spent() {
    let (hands, limiter) = limiter(RateLimit::calls(10).burst(10));
    (0..10).for_each(|_| limiter.try_acquire().expect("the burst"));
    limiter.reconfigure(&RateLimit::calls(100).burst(10)).expect("sound");
    assert!(limiter.try_acquire().is_err(), "a new limit is no new burst");
    hands.advance(secs(1));
    assert!(limiter.try_acquire().is_ok());
}

/// ENG-8, ENG-12: what is spent is so many calls, not so much time: a limit that is raised does not stand still for as long as
/// the old one would have taken to recover.
#[test]
fn eng_12_a_limit_that_is_raised_lets_more_through() {
    let (hands, limiter) = limiter(RateLimit::calls(1).burst(100));
    (0..100).for_each(|_| limiter.try_acquire().expect("the burst"));
    limiter.reconfigure(&RateLimit::calls(100).burst(100)).expect("sound");
    assert!(limiter.try_acquire().is_err(), "a new limit is no new burst");
    hands.advance(millis(10));
    assert!(limiter.try_acquire().is_ok());
}

/// ENG-8, ENG-12: a limit that is lowered, as for a peer that has too much to do, lets no second burst through.
#[test]
fn eng_12_a_limit_that_is_lowered_is_no_new_burst() {
    let (hands, limiter) = limiter(RateLimit::calls(100).burst(100));
    (0..100).for_each(|_| limiter.try_acquire().expect("the burst"));
    limiter.reconfigure(&RateLimit::calls(100).per(secs(100))).expect("sound");
    assert!(limiter.try_acquire().is_err(), "the burst is spent");
    hands.advance(secs(3));
    assert_eq!((0..100).filter(|_| limiter.try_acquire().is_ok()).count(), 3);
    // A smaller burst is spent, too, and not more than that.
    limiter.reconfigure(&RateLimit::calls(100).per(secs(100)).burst(2)).expect("sound");
    assert_eq!(limiter.try_acquire().expect_err("spent").retry_after(), secs(1));
}

/// ENG-8, ENG-12: those who wait for their turn keep it, and a turn that is given back is one of the new limit.
#[test]
fn eng_12_turns_survive_a_new_limit() {
    let limit = |calls| RateLimit::calls(calls).burst(1).max_wait(secs(60));
    let (hands, limiter) = limiter(limit(1));
    let turns: Vec<_> = (0..11).map(|_| limiter.reserve().expect("a turn")).collect();
    limiter.reconfigure(&limit(10)).expect("sound");
    let now = Clock::custom(hands).now();
    let next = || limiter.reserve().expect("a turn").at().map(|at| at.since(now));
    assert_eq!(next(), Some(millis(1_100)), "behind ten turns of a tenth of a second");
    drop(turns);
    assert_eq!(next(), Some(millis(100)), "behind nobody but the one that passed");
}

/// ENG-8: on the processor's counter the same calls pass and the same are refused as on the kernel's clock.
#[cfg(feature = "tsc")]
mod counter {
    use super::*;

    /// Both limiters are asked at once, so that they see the same time but for the moment between the two.
    #[test]
    fn eng_8_the_counter_keeps_the_limits_that_the_kernels_clock_keeps() {
        // A day's worth at once: nothing comes back while the test runs.
        let limit = RateLimit::calls(1_000).per(secs(86_400));
        let limiters = [Clock::system(), Clock::tsc()].map(|clock| limit.build_with(clock).expect("sound"));
        for limiter in &limiters {
            let passed = (0..3_000).filter(|_| limiter.try_acquire().is_ok()).count();
            assert_eq!((passed, limiter.limited()), (1_000, 2_000));
        }
        let [system, tsc] = limiters.map(|limiter| limiter.try_acquire().expect_err("spent").retry_after());
        assert!(system.abs_diff(tsc) < secs(5), "{system:?} and {tsc:?}");
    }

    /// ENG-8: what comes back is as much as the rate says, by the kernel's clock. The burst is ten seconds long, so that a test
    /// thread that is held up for less loses nothing.
    #[test]
    fn eng_8_the_counter_gives_back_as_much_as_the_rate_says() {
        const RATE: u32 = 10_000;
        let clock = Clock::tsc();
        let limiter = RateLimit::calls(RATE).burst(10 * RATE).build_with(clock.clone()).expect("sound");
        // The last moment at which something passed may lie anywhere between the readings around the refusal.
        let drain = || {
            let mut passed = 0;
            loop {
                let before = clock.precise();
                match limiter.try_acquire() {
                    Ok(()) => passed += 1,
                    Err(_) => return (passed, before, clock.precise()),
                }
            }
        };
        let (_, began_after, began_before) = drain();
        while clock.precise().since(began_before) < millis(50) {}
        let (passed, ended_after, ended_before) = drain();
        let due = |span: Duration| span.as_secs_f64() * f64::from(RATE);
        let (least, most) = (due(ended_after.since(began_before)), due(ended_before.since(began_after)));
        let passed = f64::from(passed);
        assert!(
            passed >= least * 0.99 - 2.0 && passed <= most * 1.01 + 2.0,
            "{passed}, not {least} to {most}"
        );
    }

    /// ENG-8: a turn in the future is told on the scale of the clock, not of the counter.
    #[test]
    fn eng_8_a_turn_by_the_counter_is_a_time_of_the_clock() {
        let clock = Clock::tsc();
        let limit = RateLimit::calls(1).per(secs(100)).max_wait(secs(3_000));
        let limiter = limit.build_with(clock.clone()).expect("sound");
        limiter.try_acquire().expect("the burst");
        let before = clock.precise();
        let turn = limiter.reserve().expect("a turn");
        let wait = turn.at().expect("it is in the future").since(before);
        assert!(wait > secs(95) && wait < secs(105), "{wait:?}");
    }
}

/// ENG-8, ENG-12: what is spent is counted in calls when the rules change, at whatever time that is.
#[test]
fn eng_8_what_is_spent_stays_spent_in_calls() {
    let old = Rules::new(10, secs(10), 10);
    let new = Rules::new(20, secs(10), 20);
    for at in [0, 5_000_000_000, 1_000_000_000_000_000_u64] {
        let mut due = 0;
        for _ in 0..3 {
            let (next, turn) = take(due, at, 1, &old);
            assert_eq!(turn, Turn::Now);
            due = next;
        }
        let mut due = convert(due, at, &old, &new);
        let mut left = 0;
        while let (next, Turn::Now) = take(due, at, 1, &new) {
            (due, left) = (next, left + 1);
        }
        assert_eq!(left, 17, "three of twenty are spent at {at}");
        assert_eq!(convert(0, at, &old, &new), at << 4, "nothing spent stays nothing spent");
    }
}
