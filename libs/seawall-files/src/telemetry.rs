//! The metrics of files, all in one list.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use seawall::telemetry::Measure;

/// A metric: its name, what it measures, its labels, and what it means. The names are public and do not change.
pub type FileMetric = (&'static str, Measure, &'static [&'static str], &'static str);

/// Every metric of this crate.
pub fn metrics() -> impl Iterator<Item = &'static FileMetric> {
    crate::storage::METRICS.iter().chain(crate::spool::METRICS)
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

#[cfg(test)]
mod tests {
    /// OBS-2: names do not change by accident.
    #[test]
    fn obs_2_the_names_of_the_metrics_begin_alike() {
        assert!(super::metrics().all(|(name, ..)| name.starts_with("seawall.files.")));
    }
}
