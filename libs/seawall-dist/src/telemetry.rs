//! The metrics of coordination, all in one list.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use seawall::telemetry::Measure;

/// A metric: its name, what it measures, its labels, and what it means. The names are public and do not change.
pub type Metric = (&'static str, Measure, &'static [&'static str], &'static str);

/// Every metric of this crate, part by part.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    let parts = [
        crate::lock::METRICS,
        crate::idempotency::METRICS,
        crate::outbox::METRICS,
        crate::saga::METRICS,
        crate::schedule::METRICS,
        crate::limit::METRICS,
        crate::deadletter::METRICS,
        crate::messaging::METRICS,
    ];
    parts.into_iter().flatten()
}

/// Tells the installed recorder what each metric means, for those that pass it on.
pub fn describe() {
    for &(name, measure, _, meaning) in metrics() {
        match measure {
            Measure::Counter => describe_counter!(name, meaning),
            Measure::Gauge => describe_gauge!(name, meaning),
            Measure::Histogram => describe_histogram!(name, Unit::Seconds, meaning),
        }
    }
}
