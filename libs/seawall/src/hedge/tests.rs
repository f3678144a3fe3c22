//! How long answers take, and what is made of it.

use std::time::Duration;

use proptest::prelude::*;

use super::machine::{BUCKETS, bucket_of, longest_of, percentile};
use super::*;
use crate::config::Problems;
use crate::{millis, secs};

proptest! {
    /// ENG-9: a time lies within its bucket, which is at most a quarter wider than it.
    #[test]
    fn eng_9_buckets_hold_what_falls_into_them(nanos in 4u64..=u64::MAX) {
        let bucket = bucket_of(nanos);
        prop_assert!(bucket < BUCKETS);
        prop_assert!(nanos <= longest_of(bucket));
        prop_assert!(bucket == 8 || longest_of(bucket - 1) < nanos);
        prop_assert!(longest_of(bucket) as f64 <= nanos as f64 * 1.25 + 1.0);
    }

    /// ENG-9: the percentile agrees with a sorted list, to the width of a bucket.
    #[test]
    fn eng_9_percentiles_agree_with_a_sorted_list(
        mut times in prop::collection::vec(1_000u64..10_000_000_000, 1..500),
        share in 500_000u64..999_999,
    ) {
        let mut counts = [0_u64; BUCKETS];
        times.iter().for_each(|time| counts[bucket_of(*time)] += 1);
        times.sort_unstable();
        let rank = (times.len() as u128 * u128::from(share)).div_ceil(1_000_000).max(1) as usize - 1;
        prop_assert_eq!(percentile(counts.iter().copied(), share), Some(bucket_of(times[rank])));
    }
}

/// ENG-9: the delay is the fixed one until enough is known, and then follows what answers take lately.
#[test]
fn eng_9_the_delay_follows_recent_answers() {
    let hedger = Hedger::new(Hedge::percentile(95).until_known(secs(1)));
    (0..SAMPLES_MIN - 1).for_each(|_| hedger.learn(millis(10)));
    assert_eq!(hedger.delay(), secs(1), "not enough is known");
    (0..100).for_each(|number| hedger.learn(if number % 10 == 0 { millis(300) } else { millis(10) }));
    assert!((millis(300)..=millis(375)).contains(&hedger.delay()), "{:?}", hedger.delay());
    (0..20_000).for_each(|_| hedger.learn(millis(40)));
    assert!(
        (millis(40)..=millis(50)).contains(&hedger.delay()),
        "the past is forgotten: {:?}",
        hedger.delay()
    );
    assert_eq!(Hedger::new(Hedge::after(millis(7))).delay(), millis(7));
}

/// ENG-11: hedges that double everything are refused.
#[test]
fn eng_11_a_hedge_that_cannot_work_is_refused() {
    let wrong = |hedge: Hedge| {
        let mut problems = Problems::default();
        hedge.check(&mut problems);
        problems.into_result("it", ()).expect_err("it can't work").to_string()
    };
    assert!(wrong(Hedge::after(Duration::ZERO)).contains("doubles every call"));
    assert!(wrong(Hedge::percentile(100)).contains("95 hedges one call in twenty"));
    assert!(wrong(Hedge::percentile(10)).contains("10 % is not between 50 %"));
}

/// ENG-9: buckets follow one another without a gap, to the nanosecond.
#[test]
fn eng_9_buckets_follow_one_another() {
    for bucket in 8..BUCKETS - 1 {
        let longest = longest_of(bucket);
        assert_eq!((bucket_of(longest), bucket_of(longest + 1)), (bucket, bucket + 1));
    }
    assert_eq!((bucket_of(0), bucket_of(4), bucket_of(u64::MAX)), (8, 8, BUCKETS - 1));
}
