//! Deliveries and dead letters.

use seawall_hub_core::domain::delivery::Reason;
use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, map, may, need, shape, shown, switch, text, time, words,
    written,
};
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
        ("DeadLetter", shown([delivery(), dead()].concat_fields())),
        ("DeadLetterWithEvidence", shown([delivery(), dead(), evidence()].concat_fields())),
        ("DeadLetterPage", page("deadLetters", shape("DeadLetter"))),
        ("DeadLetterDeleted", shown(vec![need("id", delivery_id()), need("deleted", switch())])),
        ("ReplayInput", replay()),
        ("Replayed", shown(vec![need("delivery", delivery_id()), need("replayOf", delivery_id())])),
    ]
}

/// The states of a delivery, as the API calls them.
const STATES: [&str; 6] = ["pending", "inFlight", "waiting", "held", "delivered", "deadLettered"];

fn states() -> Schema {
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

fn delivery() -> Vec<Field> {
    vec![
        need("id", delivery_id()),
        need("state", states()),
        need(
            "waitsFor",
            words(&["service", "rule", "order", "peer", "time", "turn"])
                .or_null()
                .says("If it has not ended"),
        ),
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
}

fn attempts() -> Field {
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

fn dead() -> Vec<Field> {
    let replayed = shown(vec![need("as", delivery_id()), need("state", states()), need("at", time())]);
    vec![
        need("deadAt", time()),
        need("status", between(100, 999).or_null().says("What the peer answered last")),
        need("error", text().or_null()),
        need("replayed", replayed.or_null().says("The newest replay of it")),
    ]
}

fn evidence() -> Vec<Field> {
    vec![
        need("rawEvent", any().says("The event as it came")),
        need("request", shape("Request").or_null().says("What was to be sent")),
        attempts(),
        need("ruleVersionToday", count(1).or_null().says("Null if the rule is gone")),
        need("trace", text().or_null()),
    ]
}

fn replay() -> Schema {
    written(vec![
        may(
            "mode",
            words(&["render", "same"])
                .says("`render`: again by today's rule; `same`: the same bytes")
                .usually(json!("render")),
        ),
        may("again", switch().says("Also if it was replayed before").usually(json!(false))),
    ])
    .like(json!({"mode": "render"}))
}
