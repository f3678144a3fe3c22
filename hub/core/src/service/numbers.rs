//! The hub's metrics by name. What each means to an operator stands in `docs/metrics.md`; those of the guards, which stand
//! beside them, are in the engine.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use seawall::telemetry::Measure;

/// Events that came in, by what became of them.
pub const EVENTS: &str = "seawall.events";
/// Events that no rule was for.
pub const EVENTS_UNMATCHED: &str = "seawall.events.unmatched";
/// Rules whose filter did not take an event.
pub const EVENTS_FILTERED: &str = "seawall.events.filtered";
/// From an event's arrival until it is on the disk.
pub const ACCEPT_DURATION: &str = "seawall.events.accept.duration";
/// Webhooks that did not show who sent them.
pub const WEBHOOKS_REFUSED: &str = "seawall.webhooks.refused";
/// What became of deliveries, step by step.
pub const DELIVERIES: &str = "seawall.deliveries";
/// Calls that somebody waited for, by what became of them.
pub const GATEWAY_CALLS: &str = "seawall.gateway.calls";
/// Sends, by how they ended.
pub const ATTEMPTS: &str = "seawall.deliveries.attempts";
/// How long a peer took to answer; OpenTelemetry's name.
pub const CLIENT_DURATION: &str = "http.client.request.duration";
/// Deliveries that were given up, by why.
pub const DEAD_LETTERS: &str = "seawall.dead_letters";
/// Deliveries that were given up because handling them panics or ends the process, by which of the two.
pub const QUARANTINED: &str = "seawall.deliveries.quarantined";
/// Dead letters that are open.
pub const DEAD_LETTERS_OPEN: &str = "seawall.dead_letters.open";
/// Deliveries whose request is under way.
pub const IN_FLIGHT: &str = "seawall.deliveries.in_flight";
/// Deliveries that wait, in memory or in the store.
pub const WAITING: &str = "seawall.deliveries.waiting";
/// For how long the oldest delivery has been due.
pub const OLDEST_DUE: &str = "seawall.deliveries.oldest_due.age";
/// Commits of the store.
pub const COMMITS: &str = "seawall.store.commits";
/// How much was committed together.
pub const COMMIT_UNITS: &str = "seawall.store.commit.units";
/// How long a commit took, with the wait for the disk.
pub const COMMIT_DURATION: &str = "seawall.store.commit.duration";
/// What waits to be written.
pub const STORE_QUEUE: &str = "seawall.store.queue";
/// The size of the write-ahead log.
pub const STORE_WAL: &str = "seawall.store.wal.size";
/// The size of the database.
pub const STORE_SIZE: &str = "seawall.store.size";
/// What was old, and is gone.
pub const PRUNED: &str = "seawall.store.pruned";
/// Spans for the collector of traces.
pub const SPANS: &str = "seawall.spans";
/// Warnings and errors in the log.
pub const LOG_LINES: &str = "seawall.log.lines";
/// Incidents that are open.
pub const ALERTS_OPEN: &str = "seawall.alerts.open";
/// Tries to tell of incidents.
pub const NOTIFICATIONS: &str = "seawall.alerts.notifications";
/// The room that is left on the disk.
pub const STORE_FREE: &str = "seawall.store.free";
/// Bytes of responses that their clients have not read yet.
pub const RESPONSE_MEMORY: &str = "seawall.response.memory";
/// Connections whose client did not read its response.
pub const CLIENTS_CUT_OFF: &str = "seawall.clients.cut_off";
/// Lines that the log had no room for.
pub const LOG_DROPPED: &str = "seawall.log.dropped";

/// Every metric: its name, what it measures, in what, its labels, and what it means. The names are public and do not change.
pub const NAMES: [(&str, Measure, Unit, &[&str], &str); 30] = [
    (EVENTS, Measure::Counter, Unit::Count, &["outcome"], "events that came in"),
    (EVENTS_UNMATCHED, Measure::Counter, Unit::Count, &[], "events that no rule was for"),
    (EVENTS_FILTERED, Measure::Counter, Unit::Count, &[], "rules whose filter did not take an event"),
    (
        ACCEPT_DURATION,
        Measure::Histogram,
        Unit::Seconds,
        &[],
        "from an event's arrival until it is on the disk",
    ),
    (
        WEBHOOKS_REFUSED,
        Measure::Counter,
        Unit::Count,
        &["source"],
        "webhooks that did not show who sent them",
    ),
    (
        DELIVERIES,
        Measure::Counter,
        Unit::Count,
        &["service", "outcome", "retried"],
        "what became of deliveries",
    ),
    (
        GATEWAY_CALLS,
        Measure::Counter,
        Unit::Count,
        &["service", "outcome", "retried"],
        "calls through the gateway that ended",
    ),
    (ATTEMPTS, Measure::Counter, Unit::Count, &["service", "error.type"], "sends, by how they ended"),
    (CLIENT_DURATION, Measure::Histogram, Unit::Seconds, &["service"], "how long a peer took to answer"),
    (DEAD_LETTERS, Measure::Counter, Unit::Count, &["service", "reason"], "deliveries that were given up"),
    (
        QUARANTINED,
        Measure::Counter,
        Unit::Count,
        &["service", "cause"],
        "deliveries that were given up because handling them panics or ends the process",
    ),
    (DEAD_LETTERS_OPEN, Measure::Gauge, Unit::Count, &["service"], "dead letters that are open"),
    (IN_FLIGHT, Measure::Gauge, Unit::Count, &["service"], "deliveries whose request is under way"),
    (
        WAITING,
        Measure::Gauge,
        Unit::Count,
        &["service"],
        "deliveries that wait, those in the store counted up to 100000",
    ),
    (
        OLDEST_DUE,
        Measure::Gauge,
        Unit::Seconds,
        &["service"],
        "for how long the oldest delivery has been due",
    ),
    (COMMITS, Measure::Counter, Unit::Count, &["outcome"], "commits of the store"),
    (COMMIT_UNITS, Measure::Histogram, Unit::Count, &[], "units of work that were committed together"),
    (
        COMMIT_DURATION,
        Measure::Histogram,
        Unit::Seconds,
        &[],
        "how long a commit took, with the wait for the disk",
    ),
    (STORE_QUEUE, Measure::Gauge, Unit::Count, &["lane"], "units of work that wait to be written"),
    (STORE_WAL, Measure::Gauge, Unit::Bytes, &[], "the size of the write-ahead log"),
    (STORE_SIZE, Measure::Gauge, Unit::Bytes, &[], "the size of the database"),
    (PRUNED, Measure::Counter, Unit::Count, &["kind"], "what was old, and is gone"),
    (SPANS, Measure::Counter, Unit::Count, &["outcome"], "spans for the collector of traces"),
    (STORE_FREE, Measure::Gauge, Unit::Bytes, &[], "the room that is left on the disk"),
    (ALERTS_OPEN, Measure::Gauge, Unit::Count, &["rule", "severity"], "incidents that are open"),
    (NOTIFICATIONS, Measure::Counter, Unit::Count, &["channel", "outcome"], "tries to tell of incidents"),
    (LOG_LINES, Measure::Counter, Unit::Count, &["level"], "warnings and errors in the log"),
    (
        RESPONSE_MEMORY,
        Measure::Gauge,
        Unit::Bytes,
        &[],
        "bytes of responses that their clients have not read yet",
    ),
    (
        CLIENTS_CUT_OFF,
        Measure::Counter,
        Unit::Count,
        &[],
        "connections whose client did not read its response",
    ),
    (LOG_DROPPED, Measure::Counter, Unit::Count, &[], "lines that the log had no room for"),
];

/// Tells the installed recorder what each metric means.
pub fn describe() {
    for (name, measure, unit, _, meaning) in NAMES {
        match measure {
            Measure::Counter => describe_counter!(name, unit, meaning),
            Measure::Gauge => describe_gauge!(name, unit, meaning),
            Measure::Histogram => describe_histogram!(name, unit, meaning),
        }
    }
}
