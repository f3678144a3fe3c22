//! The hub's metrics by name. What each means to an operator stands in `docs/metrics.md`; those of the guards, which stand
//! beside them, are in the engine.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use seawall::telemetry::Measure;

/// Incoming events, by outcome.
pub const EVENTS: &str = "seawall.events";
/// Events that no rule matched.
pub const EVENTS_UNMATCHED: &str = "seawall.events.unmatched";
/// Rules whose filter rejected an event.
pub const EVENTS_FILTERED: &str = "seawall.events.filtered";
/// The time from an event's arrival until it is on the disk.
pub const ACCEPT_DURATION: &str = "seawall.events.accept.duration";
/// Webhooks that failed verification.
pub const WEBHOOKS_REFUSED: &str = "seawall.webhooks.refused";
/// Deliveries, by step.
pub const DELIVERIES: &str = "seawall.deliveries";
/// Gateway calls, by outcome.
pub const GATEWAY_CALLS: &str = "seawall.gateway.calls";
/// Attempts, by outcome.
pub const ATTEMPTS: &str = "seawall.deliveries.attempts";
/// The response time of services; OpenTelemetry's name.
pub const CLIENT_DURATION: &str = "http.client.request.duration";
/// New dead letters, by reason.
pub const DEAD_LETTERS: &str = "seawall.dead_letters";
/// Quarantined deliveries, by panic or crash.
pub const QUARANTINED: &str = "seawall.deliveries.quarantined";
/// Open dead letters.
pub const DEAD_LETTERS_OPEN: &str = "seawall.dead_letters.open";
/// Deliveries that are being sent.
pub const IN_FLIGHT: &str = "seawall.deliveries.in_flight";
/// Waiting deliveries, in memory or in the store.
pub const WAITING: &str = "seawall.deliveries.waiting";
/// The time for which the oldest delivery has been due.
pub const OLDEST_DUE: &str = "seawall.deliveries.oldest_due.age";
/// Commits of the store.
pub const COMMITS: &str = "seawall.store.commits";
/// The number of units in a commit.
pub const COMMIT_UNITS: &str = "seawall.store.commit.units";
/// The duration of a commit, including the wait for the disk.
pub const COMMIT_DURATION: &str = "seawall.store.commit.duration";
/// Units that wait to be written.
pub const STORE_QUEUE: &str = "seawall.store.queue";
/// The size of the write-ahead log.
pub const STORE_WAL: &str = "seawall.store.wal.size";
/// The size of the database.
pub const STORE_SIZE: &str = "seawall.store.size";
/// Whether the database answers; only with PostgreSQL, as all of these.
pub const DATABASE_UP: &str = "seawall.database.up";
/// The time since the last beat that the database has answered.
pub const DATABASE_BEAT_AGE: &str = "seawall.database.beat.age";
/// The duration of the last beat.
pub const DATABASE_ROUND_TRIP: &str = "seawall.database.round_trip";
/// Open connections to the database.
pub const DATABASE_CONNECTIONS: &str = "seawall.database.connections";
/// The time for which the oldest unit has waited to be written.
pub const DATABASE_OLDEST_UNIT: &str = "seawall.database.oldest_unit.age";
/// Old rows that were deleted.
pub const PRUNED: &str = "seawall.store.pruned";
/// Spans for the collector of traces.
pub const SPANS: &str = "seawall.spans";
/// Warnings and errors in the log.
pub const LOG_LINES: &str = "seawall.log.lines";
/// Incidents that are open.
pub const ALERTS_OPEN: &str = "seawall.alerts.open";
/// Attempts to send notices.
pub const NOTIFICATIONS: &str = "seawall.alerts.notifications";
/// The free space on the disk.
pub const STORE_FREE: &str = "seawall.store.free";
/// Bytes of responses that their clients have not read yet.
pub const RESPONSE_MEMORY: &str = "seawall.response.memory";
/// Connections that were closed because the client did not read its response.
pub const CLIENTS_CUT_OFF: &str = "seawall.clients.cut_off";
/// Lines that were dropped because the log was full.
pub const LOG_DROPPED: &str = "seawall.log.dropped";

/// Every metric: its name, kind, unit, labels and meaning. The names are public and do not change.
pub const NAMES: [(&str, Measure, Unit, &[&str], &str); 35] = [
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
    (WEBHOOKS_REFUSED, Measure::Counter, Unit::Count, &["source"], "webhooks that failed verification"),
    (
        DELIVERIES,
        Measure::Counter,
        Unit::Count,
        &["service", "outcome", "retried"],
        "ended deliveries, by outcome",
    ),
    (
        GATEWAY_CALLS,
        Measure::Counter,
        Unit::Count,
        &["service", "outcome", "retried"],
        "calls through the gateway that ended",
    ),
    (ATTEMPTS, Measure::Counter, Unit::Count, &["service", "error.type"], "attempts, by outcome"),
    (CLIENT_DURATION, Measure::Histogram, Unit::Seconds, &["service"], "response time of a service"),
    (DEAD_LETTERS, Measure::Counter, Unit::Count, &["service", "reason"], "dead-lettered deliveries"),
    (
        QUARANTINED,
        Measure::Counter,
        Unit::Count,
        &["service", "cause"],
        "dead-lettered deliveries whose handling panics or ends the process",
    ),
    (DEAD_LETTERS_OPEN, Measure::Gauge, Unit::Count, &["service"], "dead letters that are open"),
    (IN_FLIGHT, Measure::Gauge, Unit::Count, &["service"], "deliveries whose attempt is in progress"),
    (
        WAITING,
        Measure::Gauge,
        Unit::Count,
        &["service"],
        "waiting deliveries, those in the store counted up to 100000",
    ),
    (OLDEST_DUE, Measure::Gauge, Unit::Seconds, &["service"], "age of the oldest due delivery"),
    (COMMITS, Measure::Counter, Unit::Count, &["outcome"], "commits of the store"),
    (COMMIT_UNITS, Measure::Histogram, Unit::Count, &[], "units of work that were committed together"),
    (
        COMMIT_DURATION,
        Measure::Histogram,
        Unit::Seconds,
        &[],
        "duration of a commit, including the sync of the disk",
    ),
    (STORE_QUEUE, Measure::Gauge, Unit::Count, &["lane"], "units of work in the write queue"),
    (STORE_WAL, Measure::Gauge, Unit::Bytes, &[], "the size of the write-ahead log"),
    (STORE_SIZE, Measure::Gauge, Unit::Bytes, &[], "the size of the database"),
    (DATABASE_UP, Measure::Gauge, Unit::Count, &[], "1 while the database answers, 0 while it does not"),
    (DATABASE_BEAT_AGE, Measure::Gauge, Unit::Seconds, &[], "time since the database last answered a beat"),
    (DATABASE_ROUND_TRIP, Measure::Gauge, Unit::Seconds, &[], "duration of the last beat"),
    (DATABASE_CONNECTIONS, Measure::Gauge, Unit::Count, &[], "open connections to the database"),
    (
        DATABASE_OLDEST_UNIT,
        Measure::Gauge,
        Unit::Seconds,
        &[],
        "age of the oldest unit of work in the write queue",
    ),
    (PRUNED, Measure::Counter, Unit::Count, &["kind"], "rows removed by retention"),
    (SPANS, Measure::Counter, Unit::Count, &["outcome"], "spans for the collector of traces"),
    (STORE_FREE, Measure::Gauge, Unit::Bytes, &[], "free space on the disk"),
    (ALERTS_OPEN, Measure::Gauge, Unit::Count, &["rule", "severity"], "incidents that are open"),
    (
        NOTIFICATIONS,
        Measure::Counter,
        Unit::Count,
        &["channel", "outcome"],
        "attempts to notify about incidents",
    ),
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

/// Registers the description of each metric with the installed recorder.
pub fn describe() {
    for (name, measure, unit, _, meaning) in NAMES {
        match measure {
            Measure::Counter => describe_counter!(name, unit, meaning),
            Measure::Gauge => describe_gauge!(name, unit, meaning),
            Measure::Histogram => describe_histogram!(name, unit, meaning),
        }
    }
}
