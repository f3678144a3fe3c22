//! What consumers do, as numbers.

use ::metrics::{counter, describe_counter, describe_gauge, gauge};
use rdkafka::Statistics;
use seawall::telemetry::Measure;

/// Every metric of this crate: its name, what it measures, its labels, and what it means. The names are public and do not
/// change.
pub const NAMES: &[(&str, Measure, &[&str], &str)] = &[
    (
        "seawall.kafka.consumer.lag",
        Measure::Gauge,
        &["group", "destination", "partition"],
        "records of a partition that are not committed",
    ),
    (
        "seawall.kafka.consumer.rebalances",
        Measure::Counter,
        &["group", "kind"],
        "partitions that were assigned or revoked",
    ),
    (
        "seawall.kafka.consumer.forwarded",
        Measure::Counter,
        &["destination"],
        "records that were moved to a retry topic or to the dead letter topic",
    ),
];

/// Tells the installed recorder what each metric means, for those that pass it on.
pub fn describe() {
    for &(name, measure, _, meaning) in NAMES {
        match measure {
            Measure::Gauge => describe_gauge!(name, meaning),
            _ => describe_counter!(name, meaning),
        }
    }
}

/// How often the client reports the lag of its partitions.
pub(crate) const REPORT_INTERVAL_MILLIS: &str = "5000";

pub(crate) fn lag(group: &str, statistics: &Statistics) {
    for topic in statistics.topics.values() {
        // Partition -1 stands for records without one.
        for partition in topic.partitions.values().filter(|partition| partition.partition >= 0) {
            if partition.consumer_lag >= 0 {
                let labels = [
                    ("group", group.to_owned()),
                    ("destination", topic.topic.clone()),
                    ("partition", partition.partition.to_string()),
                ];
                gauge!("seawall.kafka.consumer.lag", &labels).set(partition.consumer_lag as f64);
            }
        }
    }
}

pub(crate) fn rebalanced(group: &str, kind: &'static str, partitions: usize) {
    let labels = [("group", group.to_owned()), ("kind", kind.to_owned())];
    counter!("seawall.kafka.consumer.rebalances", &labels).increment(partitions as u64);
}

pub(crate) fn forwarded(topic: &str) {
    counter!("seawall.kafka.consumer.forwarded", "destination" => topic.to_owned()).increment(1);
}
