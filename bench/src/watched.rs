//! What it costs that somebody listens to a guard, and that nobody does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use seawall::telemetry::Log;
use seawall::{Guard, GuardBuilder};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use crate::op::op;
use crate::ours::{build, full_guard};
use crate::row::{Group, Rows};

/// Names of the rows, as the targets know them.
pub const NOBODY: &str = "watched by nobody";
pub const CHANGED: &str = "watched by nobody, changed while it runs";

pub fn add(rows: &mut Rows) {
    guarded(rows, NOBODY, full_guard());

    let changed = build(full_guard());
    for attempts in [4, 3] {
        let again = full_guard().retry(seawall::Retry::max_attempts(attempts));
        assert!(changed.reconfigure(again).expect("a sound configuration"));
    }
    calls(rows, CHANGED, changed);

    let asleep = build(full_guard());
    let kept = asleep.subscribe(16);
    rows.calls(Group::Watched, "watched by a subscriber that sleeps", move || {
        let _ = &kept;
        let guard = asleep.clone();
        async move |kind| guard.idempotent().call(|_attempt| op(kind)).await
    });
    let awake = build(full_guard());
    rows.calls(Group::Watched, "watched by a subscriber that takes each event", move || {
        let (guard, mut events) = (awake.clone(), awake.subscribe(1_024));
        async move |kind| {
            let answer = guard.idempotent().call(|_attempt| op(kind)).await;
            while events.try_next().is_some() {}
            answer
        }
    });

    guarded(rows, "watched by the log, no line", full_guard().log(Log::default().lines_per_second(0)));
    guarded(rows, "watched by the log, 100 lines a second", full_guard().log(Log::default()));
    guarded(rows, "watched by metrics, no recorder", full_guard().metrics());
    let measured = with_local_recorder(&Atomics, || build(full_guard().metrics()));
    calls(rows, "watched by metrics, one atomic each", measured);
    let all = with_local_recorder(&Atomics, || build(full_guard().metrics().log(Log::default())));
    calls(rows, "watched by log and metrics", all);
}

/// Writes what our guards log to nowhere. Everything else is off, as without a subscriber.
pub fn install_subscriber() {
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(std::io::sink);
    let ours = Targets::new().with_target("seawall", tracing::Level::INFO);
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(ours));
    tracing::subscriber::set_global_default(subscriber).expect("nobody else has set one");
}

fn guarded(rows: &mut Rows, name: &str, builder: GuardBuilder) {
    calls(rows, name, build(builder));
}

fn calls(rows: &mut Rows, name: &str, guard: Guard) {
    rows.calls(Group::Watched, name, move || {
        let guard = guard.clone();
        async move |kind| guard.idempotent().call(|_attempt| op(kind)).await
    });
}

/// The cheapest recorder that really records.
struct Atomics;

#[derive(Default)]
struct Sum {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl HistogramFn for Sum {
    fn record(&self, seconds: f64) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add((seconds * 1e9) as u64, Ordering::Relaxed);
    }
}

impl Recorder for Atomics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Sum::default()))
    }
}
