//! Seawall's own rows, and the targets that they have to reach.
//!
//! A row is one call of [`Rows`]: what is shared is built outside, what a thread keeps for itself in the outer closure,
//! and the inner async closure makes one call.
//!
//! ```ignore
//! let guard = Guard::builder("bench").call_timeout(CALL_TIMEOUT).build().expect("a sound configuration");
//! rows.calls(Group::Stack, GUARD, move || {
//!     let guard = guard.clone();
//!     async move |kind| guard.idempotent().call(|_attempt| op(kind)).await
//! });
//! rows.rejections(REJECTION, move || {
//!     let breaker = open.clone();
//!     async move |_| breaker.admit().map(drop)
//! });
//! rows.by_entries(BREAKER_ENTRIES, |held| {
//!     let breaker = windowed(LONG_WINDOW);
//!     // … `held` successes …
//!     async move |kind| breaker.call(op(kind)).await
//! });
//! rows.footprint(BREAKER_COUNT, breaker, async |breaker, kind| breaker.call(op(kind)).await);
//! ```

use crate::op::Kind;
use crate::ratio::{Bound, Column, Ratio};
use crate::row::{Rows, by_entries};

/// Names of our rows, as the targets know them.
pub const BREAKER_COUNT: &str = "seawall breaker, 100 calls";
pub const BREAKER_TIME: &str = "seawall breaker, 10 s";
pub const BREAKER_ENTRIES: &str = "seawall breaker, time window";
pub const REJECTION: &str = "seawall breaker, open";
pub const GUARD: &str = "seawall guard: timeouts, retry + budget, breaker";

pub fn add(_rows: &mut Rows) {}

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
        ratio("breaker with time window", BREAKER_TIME, &times, Nanoseconds(Ready), AtMost(0.2)),
        ratio(
            "breaker with time window, holding 50 000 against 100",
            &by_entries(BREAKER_ENTRIES, 50_000),
            &[&by_entries(BREAKER_ENTRIES, 100)],
            Nanoseconds(Ready),
            AtMost(1.2),
        ),
        ratio("rejection", REJECTION, &opens, Nanoseconds(Ready), third),
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
    ]
}
