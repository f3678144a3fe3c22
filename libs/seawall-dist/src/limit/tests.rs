use super::*;
use proptest::prelude::*;

const RULES: BucketRules = BucketRules { interval: 10_000, burst: 50_000, wait_max: 1_000_000 };

/// CRD-8: a burst passes at once, then calls pass at the agreed rate, and a refusal says when to come back.
#[test]
fn crd_8_a_burst_passes_and_then_the_rate() {
    let (mut full_at, now) = (0, 1_000_000);
    for _ in 0..5 {
        let Decision::Admit { wait: 0, full_at: next } = decide(full_at, now, &RULES, 1, 0) else {
            panic!("the burst was refused")
        };
        full_at = next;
    }
    assert_eq!(decide(full_at, now, &RULES, 1, 0), Decision::Refuse { retry_after: 10_000 });
    assert!(matches!(decide(full_at, now, &RULES, 1, 10_000), Decision::Admit { wait: 10_000, .. }));
    assert!(matches!(decide(full_at, now + 10_000, &RULES, 1, 0), Decision::Admit { wait: 0, .. }));
    assert!(matches!(decide(full_at, now + 9_999, &RULES, 1, 0), Decision::Refuse { retry_after: 1 }));
}

/// CRD-8: a store whose clock is set back by hours does not block the limit for hours.
#[test]
fn crd_8_a_clock_that_is_set_back_blocks_for_no_longer_than_the_longest_wait() {
    let hour = 3_600_000_000;
    let Decision::Refuse { retry_after } = decide(10 * hour, hour, &RULES, 1, 0) else {
        panic!("it came from the future, and was taken as the past")
    };
    assert!(retry_after <= RULES.wait_max + RULES.interval, "{retry_after}");
}

proptest! {
    /// CRD-8: over every span of time no more calls pass than the burst and what the rate allows in it.
    #[test]
    fn crd_8_no_span_holds_more_than_burst_and_rate(
        interval in 1_u64..50_000,
        burst in 1_u64..30,
        script in prop::collection::vec((0_u64..60_000, 1_u32..4, any::<bool>()), 1..150),
    ) {
        let rules = BucketRules { interval, burst: interval * burst, wait_max: 1_000_000 };
        let (mut full_at, mut now, mut passed) = (0, 1_000_000_u64, Vec::new());
        for (pause, calls, waits) in script {
            now += pause;
            // More than the burst never fits, and is refused before.
            let calls = calls.min(burst as u32);
            let max_wait = if waits { 100_000 } else { 0 };
            match decide(full_at, now, &rules, calls, max_wait) {
                Decision::Admit { wait, full_at: next } => {
                    prop_assert!(wait <= max_wait);
                    if wait > 0 && pause % 5 == 0 {
                        // Given up before its turn came.
                        prop_assert_eq!(give_back(next, &rules, calls), full_at.max(now));
                        full_at = give_back(next, &rules, calls);
                        continue;
                    }
                    full_at = next;
                    passed.extend((0..calls).map(|_| now + wait));
                }
                Decision::Refuse { retry_after } => prop_assert!(retry_after > max_wait),
            }
        }
        passed.sort_unstable();
        for (first, from) in passed.iter().enumerate() {
            for (last, to) in passed.iter().enumerate().skip(first) {
                let allowed = burst + (to - from) / interval;
                prop_assert!((last - first + 1) as u64 <= allowed, "{} in {}", last - first + 1, to - from);
            }
        }
    }
}
