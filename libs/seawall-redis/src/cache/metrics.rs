//! Hits, misses and degraded operations as metrics.

#[cfg(feature = "metrics")]
use ::metrics::{Counter, counter, describe_counter};
#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

/// An operation of a cache, in the label `operation`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Get,
    Put,
    Delete,
}

/// Every metric of the caches: its name, what it measures, its labels beside `cache`, and what it means. The names are public
/// and do not change.
#[cfg(feature = "metrics")]
pub const NAMES: &[(&str, Measure, &[&str], &str)] = &[
    ("seawall.cache.hits", Measure::Counter, &[], "lookups that Redis answered with an entry"),
    (
        "seawall.cache.misses",
        Measure::Counter,
        &[],
        "lookups without an entry, those that were degraded included",
    ),
    (
        "seawall.cache.degraded",
        Measure::Counter,
        &["operation"],
        "operations that were skipped because Redis is away, slow or holds something else",
    ),
];

/// Tells the installed recorder what each metric means, for those that pass it on.
#[cfg(feature = "metrics")]
pub fn describe() {
    for &(name, _, _, meaning) in NAMES {
        describe_counter!(name, meaning);
    }
}

/// The metrics of one cache, registered once.
#[derive(Debug)]
pub(super) struct CacheMetrics {
    #[cfg(feature = "metrics")]
    hits: Counter,
    #[cfg(feature = "metrics")]
    misses: Counter,
    #[cfg(feature = "metrics")]
    degraded: [Counter; 3],
}

#[cfg(feature = "metrics")]
impl CacheMetrics {
    pub(super) fn new(cache: &str) -> Self {
        let cache = || cache.to_owned();
        let degraded = |operation: &'static str| counter!("seawall.cache.degraded", "cache" => cache(), "operation" => operation);
        CacheMetrics {
            hits: counter!("seawall.cache.hits", "cache" => cache()),
            misses: counter!("seawall.cache.misses", "cache" => cache()),
            degraded: ["get", "put", "delete"].map(degraded),
        }
    }

    pub(super) fn hit(&self) {
        self.hits.increment(1);
    }

    pub(super) fn miss(&self) {
        self.misses.increment(1);
    }

    pub(super) fn degraded(&self, operation: Operation) {
        self.degraded[operation as usize].increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
#[expect(clippy::unused_self, reason = "there are counters with the feature `metrics`")]
impl CacheMetrics {
    pub(super) fn new(_: &str) -> Self {
        CacheMetrics {}
    }

    pub(super) fn hit(&self) {}

    pub(super) fn miss(&self) {}

    pub(super) fn degraded(&self, operation: Operation) {
        let (Operation::Get | Operation::Put | Operation::Delete) = operation;
    }
}
