//! Deliveries.

use seawall_hub_core::domain::delivery::Reason;
use seawall_hub_core::domain::wait::Wait;

use super::super::schema::{Field, Schema, between, count, list, map, need, shape, shown, text, time, words};
use super::Named;
use super::bridge::page;
use super::common::{delivery_id, slug};
use super::services::Concat as _;

pub(super) fn shapes() -> Vec<Named> {
    vec![
        ("Delivery", shown(delivery())),
        ("DeliveryWithAttempts", shown([delivery(), vec![attempts()]].concat_fields())),
        ("DeliveryPage", page("deliveries", shape("Delivery"))),
        ("Attempt", attempt()),
    ]
}

/// The states of a delivery, as the API calls them.
const STATES: [&str; 6] = ["pending", "inFlight", "waiting", "held", "delivered", "deadLettered"];

pub(super) fn states() -> Schema {
    words(&STATES)
}

/// And what somebody may ask for beside them.
pub(in super::super) fn states_asked_for() -> Schema {
    words(&[STATES.as_slice(), &["open"]].concat())
}

/// Why a delivery has become a dead letter.
pub(in super::super) fn reasons() -> Schema {
    words(&Reason::ALL.map(Reason::word))
}

pub(super) fn delivery() -> Vec<Field> {
    vec![
        need("id", delivery_id()),
        need("state", states()),
        need("event", text().says("The id of the event")),
        need("rule", slug()),
        need("ruleVersion", count(0).says("0 for a call that was kept, which has no rule")),
        need("service", slug()),
        need("reason", reasons().or_null().says("Why it is a dead letter")),
        need("acceptedAt", time()),
        need("dueAt", time().or_null().says("When it is tried next, if it waits for that")),
        need("failures", count(0)),
        need("counted", count(0).says("So many of the failures count against `maxAttempts`")),
        need("orderingKey", text().or_null()),
        need("replayOf", delivery_id().or_null()),
    ]
    .into_iter()
    .chain(waits())
    .collect()
}

/// What something waits for.
pub(super) fn waits() -> Vec<Field> {
    vec![
        need("waitsFor", words(&Wait::WORDS).or_null().says("Null if nothing waits.")),
        need("waitsUntil", time().or_null().says("When that ends or is looked at again, if that is known")),
        need("waitsBecause", text().or_null().says("For people: it may change")),
    ]
}

/// How many deliveries of a service wait.
pub(super) fn waiting() -> Schema {
    count(0).says(
        "Deliveries that have not ended and are not being sent: those that a list with `state=waiting` has. Those in the store are counted up to 100 000 for each service",
    )
}

/// How many deliveries of a service are being sent.
pub(super) fn in_flight() -> Schema {
    count(0).says("Deliveries whose request is under way, or whose answer is being written down")
}

pub(super) fn attempts() -> Field {
    need("attempts", list(shape("Attempt")).says("The oldest first"))
}

fn attempt() -> Schema {
    let sent = shown(vec![need("line", text()), need("headers", map(text()))]);
    shown(vec![
        need("at", time()),
        need("tookMicros", count(0)),
        need("status", between(100, 999).or_null().says("If it answered")),
        need("error", text().or_null()),
        need("sent", sent.or_null().says("What is secret is not shown")),
        need("answerHeaders", map(text()).or_null()),
        need("answer", text().or_null().says("The beginning of its body")),
    ])
}
