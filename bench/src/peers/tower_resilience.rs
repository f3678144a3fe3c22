//! tower-resilience: circuit breaker by count and by time, retry, time limiter, bulkhead.
//!
//! Its time window keeps a record per call and reads all of them at every call, so a loop that runs freely has no cost of
//! its own: the row is measured by the calls that the window holds, and two threads only by count.

use std::io;

use tower::{Service, ServiceBuilder, ServiceExt};
use tower_resilience::bulkhead::BulkheadLayer;
use tower_resilience::circuitbreaker::{CircuitBreakerLayer, SlidingWindowType};
use tower_resilience::retry::{RetryBudgetBuilder, RetryLayer};
use tower_resilience::timelimiter::TimeLimiterLayer;

use super::tower::service;
use super::{ATTEMPT_TIMEOUT, BACKOFF, CALL_TIMEOUT, COOLDOWN, LONG_WINDOW, PERMITS};
use crate::body::with_runtime;
use crate::op::{Kind, op};
use crate::row::{Group, Rows};

pub(super) fn add(rows: &mut Rows) {
    let limiter = TimeLimiterLayer::builder().timeout_duration(ATTEMPT_TIMEOUT).build();
    let limited = ServiceBuilder::new().layer(limiter).service_fn(op);
    service(rows, Group::Timeouts, "tower-resilience time limiter", limited);

    let retried = ServiceBuilder::new().layer(retry()).service_fn(op);
    service(rows, Group::Retry, "tower-resilience retry with budget", retried);

    let bulkhead =
        BulkheadLayer::builder().max_concurrent_calls(PERMITS).build().expect("a sound configuration");
    let bounded = ServiceBuilder::new().layer(bulkhead).service_fn(op);
    service(rows, Group::Admission, "tower-resilience bulkhead", bounded);

    service(rows, Group::BreakerCount, "tower-resilience, 100 calls", by_count());
    rows.by_entries("tower-resilience", |held| {
        let mut service = by_time();
        call_often(&mut service, Kind::Ready, held);
        async move |kind| service.ready().await?.call(kind).await
    });

    let mut open = by_count();
    call_often(&mut open, Kind::Failing, 200);
    let open = std::sync::Mutex::new(open);
    rows.rejections("tower-resilience, open", move || {
        let mut service = open.lock().expect("cloning does not panic").clone();
        async move |kind| service.ready().await?.call(kind).await
    });

    stack(rows);
    rows.footprint("tower-resilience, 100 calls", by_count, async |it, kind| {
        it.ready().await?.call(kind).await
    });
    rows.footprint("tower-resilience, time window", by_time, async |it, kind| {
        it.ready().await?.call(kind).await
    });
}

/// In the order of its composition guide: the time limiter of the whole call outside, then retry, breaker, bulkhead and
/// the time limiter of the attempt.
fn stack(rows: &mut Rows) {
    let attempt = TimeLimiterLayer::builder().timeout_duration(ATTEMPT_TIMEOUT).build();
    let bulkhead =
        BulkheadLayer::builder().max_concurrent_calls(PERMITS).build().expect("a sound configuration");
    let attempt = ServiceBuilder::new()
        .layer(by_count_layer())
        .layer(bulkhead)
        .layer(attempt)
        .service_fn(op)
        .map_err(|error| io::Error::other(error.to_string()));
    let call = TimeLimiterLayer::builder().timeout_duration(CALL_TIMEOUT).build();
    let stack = ServiceBuilder::new().layer(call).layer(retry()).service(attempt);
    service(rows, Group::Stack, "tower-resilience: timeouts, retry, breaker, bulkhead", stack);
}

type Breaker = tower_resilience::circuitbreaker::CircuitBreakerLayer<
    tower_resilience::circuitbreaker::DefaultClassifier,
>;

fn by_count_layer() -> Breaker {
    CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_size(100)
        .wait_duration_in_open(COOLDOWN)
        .build()
        .expect("a sound configuration")
}

fn by_count() -> impl Service<Kind, Response = u64, Error: Send + 'static> + Clone + Send + 'static {
    ServiceBuilder::new().layer(by_count_layer()).service_fn(op)
}

fn by_time() -> impl Service<Kind, Response = u64, Error: Send + 'static> + Clone + Send + 'static {
    let layer = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_type(SlidingWindowType::TimeBased)
        .sliding_window_duration(LONG_WINDOW)
        .minimum_number_of_calls(10)
        .build()
        .expect("a sound configuration");
    ServiceBuilder::new().layer(layer).service_fn(op)
}

fn retry() -> RetryLayer<Kind, u64, io::Error> {
    let budget = RetryBudgetBuilder::new().token_bucket().build().expect("a sound configuration");
    RetryLayer::builder().max_attempts(3).exponential_backoff(BACKOFF).budget(budget).build()
}

fn call_often(service: &mut impl Service<Kind>, kind: Kind, times: u64) {
    with_runtime(|runtime| {
        runtime.block_on(async {
            for _ in 0..times {
                if let Ok(ready) = service.ready().await {
                    let _ = ready.call(kind).await;
                }
            }
        });
    });
}
