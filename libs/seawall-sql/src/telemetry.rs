//! The metrics of what only a database can do: failover and transactions. Those of the stores are in
//! [`seawall_dist::telemetry`].

use seawall::telemetry::Measure;
use seawall_dist::telemetry::Metric;

/// Every metric of this crate. The names are public and do not change.
pub const METRICS: &[Metric] = &[
    ("seawall.sql.answers", Measure::Counter, &["source", "side"], "calls that a side answered"),
    (
        "seawall.sql.failures",
        Measure::Counter,
        &["source", "all"],
        "calls that no side answered, and whether all sides were asked",
    ),
    (
        "seawall.sql.transactions.retried",
        Measure::Counter,
        &[],
        "transactions that were run again after a conflict with another one",
    ),
    (
        "seawall.sql.hooks.failed",
        Measure::Counter,
        &[],
        "hooks that failed after their transaction was committed",
    ),
    (
        "seawall.sql.sagas.unreadable",
        Measure::Counter,
        &[],
        "claims of sagas that this version can't read; they are given back",
    ),
];

/// Tells the installed recorder what each metric means, for those that pass it on.
pub fn describe() {
    for &(name, _, _, meaning) in METRICS {
        metrics::describe_counter!(name, meaning);
    }
}
