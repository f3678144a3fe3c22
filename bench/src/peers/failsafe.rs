//! failsafe: consecutive failures, and success rate over a time window (its own defaults: 30 s, 80 %, 5 calls at least).

use failsafe::failure_policy::{consecutive_failures, success_rate_over_time_window};
use failsafe::futures::CircuitBreaker;
use failsafe::{Config, Error, backoff};

use super::{COOLDOWN, LONG_WINDOW};
use crate::body::with_runtime;
use crate::op::{Kind, op};
use crate::row::{Group, Rows};

const WINDOW: std::time::Duration = std::time::Duration::from_secs(30);

pub(super) fn add(rows: &mut Rows) {
    let closed = consecutive();
    rows.calls(Group::BreakerCount, "failsafe, 5 consecutive failures", move || {
        let breaker = closed.clone();
        async move |kind| breaker.call(op(kind)).await
    });

    let closed = windowed(WINDOW);
    rows.calls(Group::BreakerTime, "failsafe, success rate over 30 s", move || {
        let breaker = closed.clone();
        async move |kind| breaker.call(op(kind)).await
    });
    rows.by_entries("failsafe", |held| {
        let breaker = windowed(LONG_WINDOW);
        with_runtime(|runtime| {
            runtime.block_on(async {
                for _ in 0..held {
                    let _ = breaker.call(op(Kind::Ready)).await;
                }
            });
        });
        async move |kind| breaker.call(op(kind)).await
    });

    let open = consecutive();
    with_runtime(
        |runtime| {
            while !matches!(runtime.block_on(open.call(op(Kind::Failing))), Err(Error::Rejected)) {}
        },
    );
    rows.rejections("failsafe, open", move || {
        let breaker = open.clone();
        async move |kind| breaker.call(op(kind)).await
    });

    rows.footprint("failsafe, 5 consecutive failures", consecutive, async |it, kind| it.call(op(kind)).await);
    rows.footprint(
        "failsafe, success rate over 30 s",
        || windowed(WINDOW),
        async |it, kind| it.call(op(kind)).await,
    );
}

fn consecutive() -> impl CircuitBreaker + Clone + Send + Sync + 'static {
    Config::new().failure_policy(consecutive_failures(5, backoff::constant(COOLDOWN))).build()
}

fn windowed(window: std::time::Duration) -> impl CircuitBreaker + Clone + Send + Sync + 'static {
    Config::new()
        .failure_policy(success_rate_over_time_window(0.8, 5, window, backoff::constant(COOLDOWN)))
        .build()
}
