//! What the engine has to reach, as ratios within one run.

use crate::caches::{HIT, MISS, MOKA_HIT, MOKA_MISS, MOKA_TOGETHER, TOGETHER};
use crate::op::Kind;
use crate::ours::{
    BREAKER_ALONE, BREAKER_BLOCKING, BREAKER_COUNT, BREAKER_ENTRIES, BREAKER_TIME, BREAKER_TIME_ALONE,
    BULKHEAD, FULL_GUARD, GUARD, GUARD_REJECTION, RATE_LIMITER, RATE_LIMITER_TSC, REJECTION, TOWER,
};
use crate::ratio::{Bound, Column, Ratio};
use crate::row::by_entries;
use crate::watched::{CHANGED, NOBODY};

/// The targets of the engine.
pub fn ratios() -> Vec<Ratio> {
    use Bound::{AtLeast, AtMost};
    use Column::{Allocations, Nanoseconds, Scaling, Together};
    use Kind::{Ready, Suspending};

    let ratio = |what, ours: &str, peers: &[&str], column, bound| Ratio {
        what,
        ours: ours.to_owned(),
        peers: peers.iter().map(ToString::to_string).collect(),
        column,
        bound,
    };
    let third = AtMost(0.333);
    let times = ["failsafe, success rate over 30 s", "seatbelt, 30 s", "seatbelt, 30 s, coarse clock"];
    let opens = [
        "recloser, open",
        "failsafe, open",
        "seatbelt, open",
        "seatbelt, open, coarse clock",
        "tower-resilience, open",
    ];
    let governor = ["governor, check"];
    let stack = ["hand-made stack"];
    let small_stack = ["hand-made stack, one timeout"];
    vec![
        ratio("breaker with count window: allocations", BREAKER_COUNT, &[], Allocations(Ready), AtMost(0.0)),
        ratio("breaker with time window: allocations", BREAKER_TIME, &[], Allocations(Ready), AtMost(0.0)),
        ratio("rejection: allocations", REJECTION, &[], Allocations(Ready), AtMost(0.0)),
        ratio("guard, ready at once: allocations", GUARD, &[], Allocations(Ready), AtMost(0.0)),
        ratio("guard, suspending: allocations", GUARD, &[], Allocations(Suspending), AtMost(0.0)),
        ratio(
            "breaker with count window",
            BREAKER_COUNT,
            &["recloser, 100 calls"],
            Nanoseconds(Ready),
            third,
        ),
        ratio(
            "breaker with count window, without guard",
            BREAKER_ALONE,
            &["recloser, 100 calls"],
            Nanoseconds(Ready),
            third,
        ),
        ratio(
            "breaker with count window, blocking",
            BREAKER_BLOCKING,
            &["recloser, 100 calls, blocking"],
            Nanoseconds(Ready),
            third,
        ),
        ratio(
            "breaker with time window, without guard",
            BREAKER_TIME_ALONE,
            &times,
            Nanoseconds(Ready),
            AtMost(0.2),
        ),
        ratio("breaker with time window", BREAKER_TIME, &times, Nanoseconds(Ready), AtMost(0.2)),
        ratio(
            "breaker with time window, holding 50 000 against 100",
            &by_entries(BREAKER_ENTRIES, 50_000),
            &[&by_entries(BREAKER_ENTRIES, 100)],
            Nanoseconds(Ready),
            AtMost(1.2),
        ),
        ratio("rejection", REJECTION, &opens, Nanoseconds(Ready), third),
        ratio("rejection by a whole guard", GUARD_REJECTION, &opens, Nanoseconds(Ready), third),
        ratio("guard, ready at once", GUARD, &stack, Nanoseconds(Ready), AtMost(0.5)),
        ratio("guard, suspending", GUARD, &stack, Nanoseconds(Suspending), AtMost(0.9)),
        ratio(
            "guard, ready at once, against one timeout",
            GUARD,
            &small_stack,
            Nanoseconds(Ready),
            AtMost(0.5),
        ),
        ratio(
            "guard, suspending, against one timeout",
            GUARD,
            &small_stack,
            Nanoseconds(Suspending),
            AtMost(0.9),
        ),
        ratio(
            "two threads against one: breaker with count window",
            BREAKER_COUNT,
            &[],
            Scaling(Ready),
            AtLeast(1.0),
        ),
        ratio(
            "two threads against one: breaker with time window",
            BREAKER_TIME,
            &[],
            Scaling(Ready),
            AtLeast(1.0),
        ),
        ratio("two threads: guard, ready at once", GUARD, &stack, Together(Ready), AtLeast(1.5)),
        ratio("two threads: guard, suspending", GUARD, &stack, Together(Suspending), AtLeast(1.5)),
        ratio("bulkhead", BULKHEAD, &["tokio Semaphore::try_acquire"], Nanoseconds(Ready), AtMost(1.5)),
        // governor reads the processor's counter too. On the kernel's clock there is nothing to keep but to see what it costs.
        ratio(
            "rate limiter, both on the processor's counter",
            RATE_LIMITER_TSC,
            &governor,
            Nanoseconds(Ready),
            AtMost(1.0),
        ),
        ratio(
            "rate limiter, on the kernel's clock",
            RATE_LIMITER,
            &governor,
            Nanoseconds(Ready),
            AtMost(5.0),
        ),
        ratio("full guard, ready at once: allocations", FULL_GUARD, &[], Allocations(Ready), AtMost(0.0)),
        ratio("full guard, suspending: allocations", FULL_GUARD, &[], Allocations(Suspending), AtMost(0.0)),
        ratio("full guard, ready at once", FULL_GUARD, &stack, Nanoseconds(Ready), AtMost(0.7)),
        ratio("full guard, suspending", FULL_GUARD, &stack, Nanoseconds(Suspending), AtMost(0.95)),
        ratio(
            "tower layer, against tower's own layers",
            TOWER,
            &["tower: timeouts, retry + budget, limit"],
            Nanoseconds(Suspending),
            AtMost(1.0),
        ),
        ratio(
            "tower layer, against tower-resilience's",
            TOWER,
            &["tower-resilience: timeouts, retry, breaker, bulkhead"],
            Nanoseconds(Suspending),
            AtMost(1.0),
        ),
        ratio("cache, hit", HIT, &[MOKA_HIT], Nanoseconds(Ready), AtMost(1.0)),
        ratio(
            "cache, 8 callers of a new key",
            TOGETHER,
            &[MOKA_TOGETHER],
            Nanoseconds(Suspending),
            AtMost(0.333),
        ),
        ratio("cache, miss", MISS, &[MOKA_MISS], Nanoseconds(Ready), AtMost(1.0)),
        ratio("nobody listens: allocations", NOBODY, &[], Allocations(Ready), AtMost(0.0)),
        ratio("changed while it runs: allocations", CHANGED, &[], Allocations(Ready), AtMost(0.0)),
        ratio(
            "changed while it runs, against never changed",
            CHANGED,
            &[NOBODY],
            Nanoseconds(Ready),
            AtMost(1.1),
        ),
    ]
}
