//! What every store of shared limits has to hold.
#![expect(clippy::panic, reason = "a suite fails with a sentence")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use seawall_dist::limit::{BucketRules, LimitAnswer, LimitStore};

/// Panics if the store breaks the contract of [`LimitStore`]. Nobody else uses its limits.
pub async fn limit(store: Arc<dyn LimitStore>) {
    // One call per hour and a burst of five: nothing comes back while the suite runs.
    let slow = BucketRules { interval: 3_600_000_000, burst: 5 * 3_600_000_000, wait_max: 60_000_000 };
    assert_eq!(passes(&store, "burst", slow, 40).await, 5, "not exactly the burst passed at once");
    assert_eq!(passes(&store, "other", slow, 3).await, 3, "two limits share a bucket");
    let LimitAnswer::Refused { retry_after } = take(&store, "burst", slow, 1, 0).await else {
        panic!("a call above the limit passed")
    };
    let hour = Duration::from_secs(3_600);
    assert!(retry_after > hour / 2 && retry_after <= hour, "a refusal names a wrong time: {retry_after:?}");
    assert!(matches!(take(&store, "other", slow, 3, 0).await, LimitAnswer::Refused { .. }));
    assert!(
        matches!(take(&store, "other", slow, 2, 0).await, LimitAnswer::Admitted { .. }),
        "a refused batch took something"
    );
    turns_are_spaced(&store).await;
    turns_are_given_back(&store).await;
    the_rate_is_kept(&store).await;
}

async fn take(
    store: &Arc<dyn LimitStore>,
    name: &str,
    rules: BucketRules,
    calls: u32,
    wait_ms: u64,
) -> LimitAnswer {
    let max_wait = Duration::from_millis(wait_ms);
    store.take(name, rules, calls, max_wait).await.expect("the store answers")
}

/// The number of calls that pass of so many at once.
async fn passes(store: &Arc<dyn LimitStore>, name: &'static str, rules: BucketRules, calls: u32) -> usize {
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..calls {
        let store = store.clone();
        callers.spawn(async move { take(&store, name, rules, 1, 0).await });
    }
    let answers = callers.join_all().await;
    answers.iter().filter(|answer| matches!(answer, LimitAnswer::Admitted { .. })).count()
}

async fn turns_are_spaced(store: &Arc<dyn LimitStore>) {
    let rules = BucketRules { interval: 10_000_000, burst: 10_000_000, wait_max: 60_000_000 };
    let mut last = SystemTime::UNIX_EPOCH;
    for turn in 0..4_u64 {
        let LimitAnswer::Admitted { wait, at } = take(store, "turns", rules, 1, 35_000).await else {
            panic!("a turn within the wait was refused")
        };
        assert!(wait <= Duration::from_secs(10 * turn), "turn {turn} waits for {wait:?}");
        let space = at.duration_since(last).expect("turns come in order");
        assert!(space >= Duration::from_secs(10), "two turns are {space:?} apart");
        last = at;
    }
    assert!(matches!(take(store, "turns", rules, 1, 15_000).await, LimitAnswer::Refused { .. }));
}

async fn turns_are_given_back(store: &Arc<dyn LimitStore>) {
    let rules = BucketRules { interval: 3_600_000_000, burst: 3_600_000_000, wait_max: 60_000_000 };
    assert!(matches!(take(store, "back", rules, 1, 0).await, LimitAnswer::Admitted { .. }));
    assert!(matches!(take(store, "back", rules, 1, 0).await, LimitAnswer::Refused { .. }));
    store.give_back("back", rules, 1).await.expect("the store answers");
    let answer = take(store, "back", rules, 1, 0).await;
    assert!(matches!(answer, LimitAnswer::Admitted { .. }), "what was given back is lost");
    store.give_back("nobody", rules, 1).await.expect("giving back to a limit that nobody used does nothing");
}

/// By the store's own clock, no second holds more than the rate and the burst.
async fn the_rate_is_kept(store: &Arc<dyn LimitStore>) {
    let rules = BucketRules { interval: 5_000, burst: 20_000, wait_max: 60_000_000 };
    let (rate, burst) = (200_u32, 4_u32);
    let (mut times, mut first) = (Vec::new(), None);
    while first.is_none_or(|first: SystemTime| {
        times.last().is_none_or(|last: &SystemTime| {
            last.duration_since(first).is_ok_and(|span| span < Duration::from_millis(600))
        })
    }) {
        match take(store, "rate", rules, 1, 0).await {
            LimitAnswer::Admitted { at, .. } => {
                first.get_or_insert(at);
                times.push(at);
            }
            LimitAnswer::Refused { retry_after } => tokio::time::sleep(retry_after).await,
        }
    }
    for (index, from) in times.iter().enumerate() {
        for (last, to) in times.iter().enumerate().skip(index) {
            let span = to.duration_since(*from).expect("turns come in order");
            let allowed = f64::from(burst) + span.as_secs_f64() * f64::from(rate);
            let count = last - index + 1;
            assert!(count as f64 <= allowed + 0.01, "{count} calls passed in {span:?}");
        }
    }
}
