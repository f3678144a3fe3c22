//! What a spool does as numbers.

use std::sync::Arc;

use seawall_dist::Millis;

use super::SpoolStats;

/// The metrics of spools; the label beside those in the list is `spool`.
#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::FileMetric] = &[
    ("seawall.files.spool.depth", seawall::telemetry::Measure::Gauge, &[], "files that wait to be sent"),
    ("seawall.files.spool.bytes", seawall::telemetry::Measure::Gauge, &[], "bytes of all files in the spool"),
    (
        "seawall.files.spool.lag",
        seawall::telemetry::Measure::Gauge,
        &[],
        "age of the oldest file that waits, in seconds",
    ),
    (
        "seawall.files.spool.accepted",
        seawall::telemetry::Measure::Counter,
        &[],
        "files that the spool accepted",
    ),
    ("seawall.files.spool.sent", seawall::telemetry::Measure::Counter, &[], "files that were sent later"),
    ("seawall.files.spool.failed", seawall::telemetry::Measure::Counter, &[], "attempts to send that failed"),
    ("seawall.files.spool.dead", seawall::telemetry::Measure::Counter, &[], "files that were given up"),
];

/// The metrics of one spool.
#[derive(Debug)]
pub(super) struct SpoolMetrics {
    name: Arc<str>,
}

impl SpoolMetrics {
    pub(super) fn new(name: &str) -> Self {
        SpoolMetrics { name: name.into() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn measured(&self, stats: &SpoolStats, now: Millis) {
        let lag = stats.oldest.map_or(0.0, |oldest| now.since(oldest).as_secs_f64());
        #[cfg(feature = "metrics")]
        for (name, value) in [
            ("seawall.files.spool.depth", stats.files as f64),
            ("seawall.files.spool.bytes", stats.bytes as f64),
            ("seawall.files.spool.lag", lag),
        ] {
            metrics::gauge!(name, "spool" => Arc::clone(&self.name)).set(value);
        }
        let _ = lag;
    }

    pub(super) fn accepted(&self) {
        self.count("seawall.files.spool.accepted");
    }

    pub(super) fn sent(&self) {
        self.count("seawall.files.spool.sent");
    }

    pub(super) fn failed(&self) {
        self.count("seawall.files.spool.failed");
    }

    pub(super) fn given_up(&self) {
        self.count("seawall.files.spool.dead");
    }

    #[cfg(feature = "metrics")]
    fn count(&self, name: &'static str) {
        metrics::counter!(name, "spool" => Arc::clone(&self.name)).increment(1);
    }

    #[cfg(not(feature = "metrics"))]
    #[expect(clippy::unused_self, reason = "there are counters with the feature `metrics`")]
    fn count(&self, _: &'static str) {}
}
