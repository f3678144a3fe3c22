//! Seawall's own rows: each policy alone in a guard, the breaker also without one, and the whole guard.

use std::sync::Arc;
use std::time::Duration;

use seawall::breaker::{CircuitBreaker, Failure, Outcome};
use seawall::tower::{GuardLayer, Replay};
use seawall::{Backoff, Breaker, Bulkhead, Clock, Guard, GuardBuilder, Hedge, RateLimit, Retry, Safety};
use tower::Layer;

use crate::body::with_runtime;
use crate::op::{Answer, Kind, blocking_op, op};
use crate::peers::{self, ATTEMPT_TIMEOUT, BACKOFF, CALL_TIMEOUT, COOLDOWN, LONG_WINDOW, PERMITS};
use crate::row::{Group, Rows};

/// Names of our rows, as the targets know them.
pub const BREAKER_COUNT: &str = "seawall breaker, 100 calls";
pub const BREAKER_ALONE: &str = "seawall breaker without guard, 100 calls";
pub const BREAKER_BLOCKING: &str = "seawall breaker without guard, blocking";
pub const BREAKER_TIME: &str = "seawall breaker, 10 s";
pub const BREAKER_ENTRIES: &str = "seawall breaker, time window";
pub const BREAKER_TIME_ALONE: &str = "seawall breaker without guard, 10 s";
pub const REJECTION: &str = "seawall breaker without guard, open";
pub const GUARD_REJECTION: &str = "seawall guard with a breaker, open";
pub const BULKHEAD: &str = "seawall bulkhead";
pub const RATE_LIMITER: &str = "seawall rate limiter";
pub const RATE_LIMITER_TSC: &str = "seawall rate limiter, tsc clock";
pub const FULL_GUARD: &str = "seawall full guard: … + rate limit, bulkhead";
pub const TOWER: &str = "seawall tower layer: full guard";
pub const HEDGED: &str = "seawall full guard, hedged";
pub const GUARD: &str = "seawall guard: timeouts, retry + budget, breaker";

/// The windows of the rows: as the peers' where theirs can be set.
const CALLS: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

pub fn add(rows: &mut Rows) {
    let one = || Guard::builder("bench").no_retry().no_call_timeout();

    guarded(rows, Group::Timeouts, "seawall call timeout", one().call_timeout(CALL_TIMEOUT));
    guarded(rows, Group::Timeouts, "seawall attempt timeout", one().attempt_timeout(ATTEMPT_TIMEOUT));
    let both = one().call_timeout(CALL_TIMEOUT).attempt_timeout(ATTEMPT_TIMEOUT);
    guarded(rows, Group::Timeouts, "seawall both timeouts", both);
    guarded(rows, Group::Retry, "seawall retry", one().retry(retry().no_budget()));
    guarded(rows, Group::Retry, "seawall retry + budget", one().retry(retry()));
    guarded(rows, Group::BreakerCount, "seawall breaker, in a row", one().breaker(Breaker::default()));
    guarded(rows, Group::BreakerCount, BREAKER_COUNT, one().breaker(by_count()));
    guarded(rows, Group::BreakerTime, BREAKER_TIME, one().breaker(by_time(WINDOW)));
    guarded(rows, Group::Stack, "seawall bare guard: call timeout, retry + budget", Guard::builder("bench"));
    let whole =
        || Guard::builder("bench").call_timeout(CALL_TIMEOUT).attempt_timeout(ATTEMPT_TIMEOUT).retry(retry());
    guarded(rows, Group::Stack, GUARD, whole().breaker(by_count()));
    guarded(rows, Group::Stack, "seawall guard, time window", whole().breaker(by_time(WINDOW)));

    let full = full_guard;
    guarded(rows, Group::Stack, FULL_GUARD, full());
    let hedged = build(full().hedge(Hedge::after(ATTEMPT_TIMEOUT / 2)));
    rows.calls(Group::Stack, HEDGED, move || {
        let guard = hedged.clone();
        async move |kind| guard.idempotent().hedged().call(|_attempt| op(kind)).await
    });
    let layer = GuardLayer::new(build(full())).layer(tower::service_fn(|Request(kind)| op(kind)));
    let mapped = tower::ServiceExt::map_request(layer, Request);
    peers::tower::service(rows, Group::Stack, TOWER, mapped);
    guarded(
        rows,
        Group::Admission,
        "seawall bulkhead, in a guard",
        one().bulkhead(Bulkhead::max_calls(PERMITS as u32)),
    );
    guarded(rows, Group::Admission, "seawall rate limit, in a guard", one().rate_limit(limit()));
    let gate = Arc::new(Bulkhead::max_calls(PERMITS as u32).build().expect("a sound configuration"));
    rows.calls(Group::Admission, BULKHEAD, move || {
        let gate = gate.clone();
        async move |kind| {
            let _place = gate.try_enter().map_err(std::io::Error::other)?;
            op(kind).await
        }
    });
    for (name, clock) in [(RATE_LIMITER, Clock::system()), (RATE_LIMITER_TSC, Clock::tsc())] {
        let limiter = Arc::new(limit().build_with(clock).expect("a sound configuration"));
        rows.calls(Group::Admission, name, move || {
            let limiter = limiter.clone();
            async move |kind| {
                limiter.try_acquire().map_err(std::io::Error::other)?;
                op(kind).await
            }
        });
    }

    alone(rows, Group::BreakerCount, BREAKER_ALONE, by_count());
    alone(rows, Group::BreakerTime, BREAKER_TIME_ALONE, by_time(WINDOW));
    let breaker = circuit(by_count());
    rows.calls(Group::BreakerCount, "seawall breaker without guard, by ticket", move || {
        let breaker = breaker.clone();
        async move |kind| by_ticket(&breaker, kind).await
    });
    let blocking = circuit(by_count());
    rows.plain(Group::BreakerBlocking, BREAKER_BLOCKING, move || blocking.run(outcome, blocking_op).is_ok());
    rows.by_entries(BREAKER_ENTRIES, |held| {
        let breaker = circuit(by_time(LONG_WINDOW));
        (0..held).for_each(|_| breaker.admit().expect("it is closed").finish(Outcome::Success));
        async move |kind| breaker.call(outcome, op(kind)).await
    });

    let open = build(one().breaker(Breaker::consecutive_failures(1).cooldown(COOLDOWN)));
    with_runtime(|runtime| runtime.block_on(open.call(|_| op(Kind::Failing))).expect_err("it opens"));
    rows.rejections(GUARD_REJECTION, move || {
        let guard = open.clone();
        async move |kind| guard.call(|_| op(kind)).await
    });
    let open = circuit(Breaker::consecutive_failures(1).cooldown(COOLDOWN));
    open.admit().expect("it is closed").finish(Outcome::Failure);
    rows.rejections(REJECTION, move || {
        let breaker = open.clone();
        async move |kind| breaker.call(outcome, op(kind)).await
    });

    rows.footprint(
        BREAKER_COUNT,
        || circuit(by_count()),
        async |breaker, kind| breaker.call(outcome, op(kind)).await,
    );
    rows.footprint(
        BREAKER_TIME,
        || circuit(by_time(WINDOW)),
        async |breaker, kind| breaker.call(outcome, op(kind)).await,
    );
    rows.footprint(
        GUARD,
        move || build(whole().breaker(by_count())),
        async |guard, kind| guard.idempotent().call(|_| op(kind)).await,
    );
}

/// What is sent through the tower layer: it may be sent twice.
#[derive(Clone, Copy)]
struct Request(Kind);

impl Replay for Request {
    fn try_clone(&self) -> Option<Self> {
        Some(*self)
    }

    fn safety(&self) -> Safety {
        Safety::Idempotent
    }
}

/// Everything that a guard can hold on the way of an ordinary call.
pub fn full_guard() -> GuardBuilder {
    Guard::builder("bench")
        .call_timeout(CALL_TIMEOUT)
        .attempt_timeout(ATTEMPT_TIMEOUT)
        .retry(retry())
        .breaker(by_count())
        .rate_limit(limit())
        .bulkhead(Bulkhead::max_calls(PERMITS as u32))
}

fn retry() -> Retry {
    Retry::max_attempts(3).backoff(Backoff::exponential(BACKOFF))
}

fn limit() -> RateLimit {
    RateLimit::calls(1_000_000_000).per(Duration::from_secs(100))
}

fn guarded(rows: &mut Rows, group: Group, name: &str, builder: GuardBuilder) {
    let guard = build(builder);
    rows.calls(group, name, move || {
        let guard = guard.clone();
        async move |kind| guard.idempotent().call(|_attempt| op(kind)).await
    });
}

fn alone(rows: &mut Rows, group: Group, name: &str, breaker: Breaker) {
    let breaker = circuit(breaker);
    rows.calls(group, name, move || {
        let breaker = breaker.clone();
        async move |kind| breaker.call(outcome, op(kind)).await
    });
}

/// What one writes who uses a circuit by hand, with a ticket.
async fn by_ticket(breaker: &CircuitBreaker, kind: Kind) -> Result<u64, Failure<std::io::Error>> {
    let ticket = breaker.admit()?;
    let answer = op(kind).await;
    ticket.finish(outcome(&answer));
    answer.map_err(Failure::Failed)
}

fn outcome(answer: &Answer) -> Outcome {
    if answer.is_ok() { Outcome::Success } else { Outcome::Failure }
}

pub fn build(builder: GuardBuilder) -> Guard {
    builder.build().expect("a sound configuration")
}

fn circuit(breaker: Breaker) -> Arc<CircuitBreaker> {
    Arc::new(breaker.build().expect("a sound configuration"))
}

fn by_count() -> Breaker {
    Breaker::failure_rate(50).over_calls(CALLS).cooldown(COOLDOWN)
}

fn by_time(window: Duration) -> Breaker {
    Breaker::failure_rate(50).over_time(window).cooldown(COOLDOWN)
}
