//! Calls and attempts as metrics.

use std::time::Duration;

use tonic::Code;

#[cfg(feature = "metrics")]
use ::metrics::{Counter, Histogram, counter, describe_counter, describe_histogram, histogram};
#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;
#[cfg(feature = "metrics")]
use std::sync::OnceLock;

/// Every metric of the adapter: its name, what it measures, its labels and what it means. The names are public and do not change.
#[cfg(feature = "metrics")]
pub const NAMES: &[(&str, Measure, &[&str], &str)] = &[
    (
        "rpc.client.call.duration",
        Measure::Histogram,
        &["server.address", "rpc.method", "rpc.response.status_code"],
        "calls with all their attempts and the whole response, in seconds",
    ),
    (ATTEMPTS, Measure::Counter, LABELS, "attempts that were sent"),
    (RETRIES, Measure::Counter, LABELS, "attempts that a retry policy sent after a failure"),
    (HEDGES, Measure::Counter, LABELS, "attempts that a hedging policy sent beside another one"),
    (
        TRANSPARENT,
        Measure::Counter,
        LABELS,
        "attempts that replaced one which the server's application never saw",
    ),
    (THROTTLED, Measure::Counter, LABELS, "attempts that were not sent because too few tokens are left"),
    (
        PUSHBACK,
        Measure::Counter,
        &["server.address", "rpc.method", "kind"],
        "responses that say when to come back (delay), or not to (stop)",
    ),
];

#[cfg(feature = "metrics")]
const ATTEMPTS: &str = "rpc.client.attempts";
#[cfg(feature = "metrics")]
const RETRIES: &str = "rpc.client.retries";
#[cfg(feature = "metrics")]
const HEDGES: &str = "rpc.client.hedges";
#[cfg(feature = "metrics")]
const TRANSPARENT: &str = "rpc.client.transparent_retries";
#[cfg(feature = "metrics")]
const THROTTLED: &str = "rpc.client.throttled";
#[cfg(feature = "metrics")]
const PUSHBACK: &str = "rpc.client.pushback";
#[cfg(feature = "metrics")]
const LABELS: &[&str] = &["server.address", "rpc.method"];

/// Tells the installed recorder what each metric means, for those that pass it on.
#[cfg(feature = "metrics")]
pub fn describe() {
    for &(name, measure, _, meaning) in NAMES {
        match measure {
            Measure::Histogram => describe_histogram!(name, ::metrics::Unit::Seconds, meaning),
            _ => describe_counter!(name, meaning),
        }
    }
}

/// The metrics of one method, registered once.
#[cfg(feature = "metrics")]
#[derive(Debug)]
pub(crate) struct MethodMetrics {
    server: String,
    method: String,
    attempts: Counter,
    retries: Counter,
    hedges: Counter,
    transparent: Counter,
    throttled: Counter,
    delays: Counter,
    stops: Counter,
    /// By status code.
    durations: [OnceLock<HistogramHandle>; 17],
}

/// The handle has no `Debug`.
#[cfg(feature = "metrics")]
struct HistogramHandle(Histogram);

#[cfg(feature = "metrics")]
impl std::fmt::Debug for HistogramHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HistogramHandle")
    }
}

#[cfg(feature = "metrics")]
impl MethodMetrics {
    pub(crate) fn new(server: &str, path: &str) -> Self {
        let (server, method) = (server.to_owned(), path.trim_start_matches('/').to_owned());
        let of = |name: &'static str| counter!(name, "server.address" => server.clone(), "rpc.method" => method.clone());
        let pushback = |kind: &'static str| {
            let (server, method) = (server.clone(), method.clone());
            counter!(PUSHBACK, "server.address" => server, "rpc.method" => method, "kind" => kind)
        };
        MethodMetrics {
            attempts: of(ATTEMPTS),
            retries: of(RETRIES),
            hedges: of(HEDGES),
            transparent: of(TRANSPARENT),
            throttled: of(THROTTLED),
            delays: pushback("delay"),
            stops: pushback("stop"),
            durations: Default::default(),
            server,
            method,
        }
    }

    pub(crate) fn attempt(&self) {
        self.attempts.increment(1);
    }

    pub(crate) fn retry(&self) {
        self.retries.increment(1);
    }

    pub(crate) fn hedge(&self) {
        self.hedges.increment(1);
    }

    pub(crate) fn transparent_retry(&self) {
        self.transparent.increment(1);
    }

    pub(crate) fn throttled(&self) {
        self.throttled.increment(1);
    }

    pub(crate) fn pushback_delay(&self) {
        self.delays.increment(1);
    }

    pub(crate) fn pushback_stop(&self) {
        self.stops.increment(1);
    }

    pub(crate) fn finished(&self, code: Code, duration: Duration) {
        let handle = self.durations[code as usize].get_or_init(|| {
            let (server, method) = (self.server.clone(), self.method.clone());
            HistogramHandle(histogram!(
                "rpc.client.call.duration",
                "server.address" => server,
                "rpc.method" => method,
                "rpc.response.status_code" => crate::span::name(code),
            ))
        });
        handle.0.record(duration.as_secs_f64());
    }
}

/// Nothing is counted without the feature `metrics`.
#[cfg(not(feature = "metrics"))]
#[derive(Debug)]
pub(crate) struct MethodMetrics {}

#[cfg(not(feature = "metrics"))]
#[expect(clippy::unused_self, reason = "there are counters with the feature `metrics`")]
impl MethodMetrics {
    pub(crate) fn new(_: &str, _: &str) -> Self {
        MethodMetrics {}
    }

    pub(crate) fn attempt(&self) {}

    pub(crate) fn retry(&self) {}

    pub(crate) fn hedge(&self) {}

    pub(crate) fn transparent_retry(&self) {}

    pub(crate) fn throttled(&self) {}

    pub(crate) fn pushback_delay(&self) {}

    pub(crate) fn pushback_stop(&self) {}

    pub(crate) fn finished(&self, _: Code, _: Duration) {}
}
