//! What an outbox does as log lines and as numbers.

use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
use tokio::task::JoinError;

use super::store::{OutboxRow, Stats};

#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

/// The labels beside `outbox`.
#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    ("seawall.outbox.depth", Measure::Gauge, &[], "rows that wait to be published"),
    ("seawall.outbox.lag", Measure::Gauge, &[], "age of the oldest row that waits, in seconds"),
    ("seawall.outbox.dead", Measure::Gauge, &[], "rows that are set aside"),
    ("seawall.outbox.published", Measure::Counter, &[], "rows that were published and recorded"),
    ("seawall.outbox.failed", Measure::Counter, &[], "attempts that failed and are made again"),
    ("seawall.outbox.set_aside", Measure::Counter, &[], "rows that were set aside"),
    (
        "seawall.outbox.leases_lost",
        Measure::Counter,
        &[],
        "batches whose lease ended before their outcomes were recorded",
    ),
    ("seawall.outbox.store_failures", Measure::Counter, &[], "statements of the store that failed"),
];

/// The telemetry of one relay.
#[derive(Debug)]
pub(super) struct Telemetry {
    #[cfg(feature = "metrics")]
    name: Arc<str>,
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    samplers: [seawall::telemetry::Sampler; 3],
}

impl Telemetry {
    pub(super) fn new(name: &Arc<str>, clock: &Clock) -> Self {
        let _ = (name, clock);
        Telemetry {
            #[cfg(feature = "metrics")]
            name: Arc::clone(name),
            #[cfg(feature = "tracing")]
            clock: clock.clone(),
            #[cfg(feature = "tracing")]
            samplers: [(); 3]
                .map(|()| seawall::telemetry::Sampler::new(seawall::telemetry::LINES_PER_SECOND)),
        }
    }

    #[cfg(feature = "metrics")]
    fn count(&self, name: &'static str, count: u64) {
        metrics::counter!(name, "outbox" => Arc::clone(&self.name)).increment(count);
    }

    #[cfg(not(feature = "metrics"))]
    fn count(&self, _: &'static str, _: u64) {}

    /// Whether a line of this kind may be written, and how many were left out before it.
    #[cfg(feature = "tracing")]
    fn passes(&self, kind: usize) -> Option<Option<u64>> {
        self.samplers[kind].pass(self.clock.now())
    }

    pub(super) fn measured(&self, stats: &Stats) {
        let _ = stats;
        #[cfg(feature = "metrics")]
        for (name, value) in [
            ("seawall.outbox.depth", stats.depth as f64),
            ("seawall.outbox.lag", stats.lag.as_secs_f64()),
            ("seawall.outbox.dead", stats.dead as f64),
        ] {
            metrics::gauge!(name, "outbox" => Arc::clone(&self.name)).set(value);
        }
    }

    pub(super) fn published(&self, rows: u64) {
        if rows == 0 {
            return;
        }
        self.count("seawall.outbox.published", rows);
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "seawall", rows, "[Outbox][Publish] Success.");
    }

    pub(super) fn failed(&self, row: &OutboxRow, delay: Duration, cause: &str) {
        let _ = (row, delay, cause);
        self.count("seawall.outbox.failed", 1);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(0) {
            let (message, delay) = (&row.message, seawall::telemetry::Millis(delay));
            tracing::warn!(target: "seawall", traceId = trace_id(message), eventId = message.event_id(), eventType = message.event_type(),
                aggregateId = message.aggregate_id(), attempt = row.attempts, %delay, cause, action = "QueueForRetry", suppressed,
                "[Outbox][Publish] Retry triggered.");
        }
    }

    pub(super) fn set_aside(&self, row: &OutboxRow, cause: &str) {
        let _ = (row, cause);
        self.count("seawall.outbox.set_aside", 1);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(1) {
            let message = &row.message;
            tracing::error!(target: "seawall", traceId = trace_id(message), eventId = message.event_id(), eventType = message.event_type(),
                aggregateId = message.aggregate_id(), attempt = row.attempts, cause, action = "ManualReview", suppressed,
                "[Outbox][Publish] Failed! Set aside.");
        }
    }

    pub(super) fn lease_lost(&self, rows: usize) {
        let _ = rows;
        self.count("seawall.outbox.leases_lost", 1);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", rows, action = "QueueForRetry", "[Outbox][Publish] Lease lost!");
    }

    pub(super) fn store_failed(&self, operation: &str, error: &dyn std::fmt::Display) {
        let _ = (operation, error);
        self.count("seawall.outbox.store_failures", 1);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(2) {
            tracing::warn!(target: "seawall", cause = %error, suppressed, "[Outbox][{operation}] Failed!");
        }
    }

    pub(super) fn panicked(&self, error: &JoinError) {
        let _ = error;
        self.count("seawall.outbox.leases_lost", 1);
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", cause = %error, "[Outbox][Publish] Panicked!");
    }
}

/// The trace that a message belongs to, by its header `traceparent`.
#[cfg(feature = "tracing")]
pub(super) fn trace_id(message: &crate::Message) -> Option<&str> {
    message.header("traceparent").and_then(seawall::telemetry::trace_id_of)
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    /// OBS-2: names do not change by accident.
    #[test]
    fn obs_2_the_names_of_the_metrics_begin_alike() {
        assert!(super::METRICS.iter().all(|(name, ..)| name.starts_with("seawall.outbox.")));
    }
}
