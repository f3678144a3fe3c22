//! Shapes of deliveries.

use seawall_hub_core::domain::delivery::DeadLetterReason;
use seawall_hub_core::domain::delivery::waiting::Wait;

use super::super::schema::{Field, Schema, count, list, need, shape, text, time, words};
use super::common::{delivery_id, slug};

/// The states of a delivery, as the API calls them.
pub(super) fn states() -> Schema {
    words(&["pending", "inFlight", "waiting", "held", "delivered", "deadLettered"])
}

/// The reasons for dead letters.
pub(super) fn reasons() -> Schema {
    words(&DeadLetterReason::ALL.map(DeadLetterReason::word))
}

pub(super) fn delivery() -> Vec<Field> {
    vec![
        need("id", delivery_id()),
        need("state", states()),
        need("event", text().says("Event id")),
        need("rule", slug()),
        need("ruleVersion", count(0).says("0 for a queued gateway call, which has no rule")),
        need("service", slug()),
        need("reason", reasons().or_null().says("Reason for dead-lettering; null while it is none")),
        need("acceptedAt", time()),
        need("dueAt", time().or_null().says("Time of the next attempt, if it waits for that")),
        need("failures", count(0)),
        need("counted", count(0).says("Number of failures that count towards `maxAttempts`")),
        need("orderingKey", text().or_null()),
        need("replayOf", delivery_id().or_null()),
    ]
    .into_iter()
    .chain(waits())
    .collect()
}

/// The fields that describe a wait.
pub(super) fn waits() -> Vec<Field> {
    vec![
        need("waitsFor", words(&Wait::WORDS).or_null().says("What it waits for; null if nothing waits")),
        need("waitsUntil", time().or_null().says("End of the wait or time of the next check, if known")),
        need("waitsBecause", text().or_null().says("For people: the wording may change")),
    ]
}

pub(super) fn attempts() -> Field {
    need("attempts", list(shape("Attempt")).says("Oldest first"))
}
