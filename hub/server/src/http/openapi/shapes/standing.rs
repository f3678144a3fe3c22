//! How things stand: the overview, the services, and what happened lately.

use serde_json::json;

use super::super::schema::{
    Schema, count, list, map, may_say, need, number, shape, shown, switch, text, time, words,
};
use super::Named;
use super::common::{duration, slug};
use super::deliveries::{in_flight, waiting, waits};
use super::services::{Concat as _, state};
use crate::numbers::CLASSES;

pub(super) fn shapes() -> Vec<Named> {
    vec![
        ("Overview", overview()),
        ("Matter", matter()),
        ("Standing", standing()),
        ("StandingPage", standings()),
        ("Point", point()),
        ("History", history()),
    ]
}

fn share() -> Schema {
    number().or_null().says("0 to 1, of the sends of the last five minutes; null if there were none")
}

fn overview() -> Schema {
    let services = shown(vec![
        need("total", count(0)),
        need("byCircuit", map(count(0)).says("By state; `none` are those without a breaker")),
        need("paused", count(0)),
    ]);
    let events = shown(vec![
        need("perSecond", number().says("Over the last five seconds")),
        need("total", count(0).says("Since the start")),
    ]);
    let deliveries = shown(vec![
        need("perSecond", number().says("Delivered, over the last five seconds")),
        need("sendsPerSecond", number().says("Sent, retries and calls included")),
        need("waiting", waiting()),
        need("inFlight", in_flight()),
        need("oldestDueAt", time().or_null().says("Since when the oldest one has been due")),
        need("oldestDueSeconds", count(0)),
        need("successRate", share()),
    ]);
    let dead = shown(vec![need("service", slug()), need("open", count(1))]);
    let letters = shown(vec![need("open", count(0)), need("byService", list(dead))]);
    let keeps = shown(vec![
        need("delivered", duration().or_null().says("An event, from the last of its deliveries on")),
        need("discarded", duration().or_null().says("A dead letter that was deleted, from then on")),
        need("audit", duration().or_null().says("Who has changed what")),
    ]);
    shown(vec![
        need("since", time().says("When the hub was started")),
        need("version", text()),
        need("publicUrl", text().or_null().says("Where people find the hub; links in alerts begin with it")),
        need("keeps", keeps.says("How long what has ended is kept; null for ever")),
        need("services", services),
        need("events", events.or_null().says("Null for a key that is limited to some services")),
        need("deliveries", deliveries),
        need("deadLetters", letters),
        need("attention", list(shape("Matter")).says("What needs a person, the worst first, 50 at most")),
    ])
}

fn matter() -> Schema {
    shown(vec![
        need("kind", words(&["circuit", "deadLetters", "paused", "late", "rule"])),
        need("severity", words(&["bad", "warn"])),
        need("service", slug().or_null()),
        need("rule", slug().or_null()),
        need("since", time().or_null()),
        need("waiting", count(0).says("Deliveries that wait for it")),
        need("waitsBecause", text().or_null().says("Why they wait and until when; for people: it may change")),
        need("deadLetters", count(0)),
        need("circuit", state().or_null()),
        need("message", text().says("For people: it may change")),
    ])
    .like(json!({
        "kind": "circuit", "severity": "bad", "service": "billing", "rule": null, "since": "2026-11-15T16:16:23.497Z",
        "waiting": 120, "waitsBecause": "circuit open, next probe in 3 s", "deadLetters": 0, "circuit": "open", "message": "its circuit is open: too many sends failed",
    }))
}

fn standing() -> Schema {
    let own = vec![
        need("name", slug()),
        need("address", text()),
        need("paused", switch()),
        need("circuit", state().or_null().says("Null if its policy has no breaker")),
        need("waiting", waiting()),
        need("inFlight", in_flight()),
        need("deadLetters", count(0)),
        need("oldestDueAt", time().or_null()),
        need("successRate", share()),
        need("sendsPerSecond", number()),
        need(
            "sends",
            list(count(0)).says("For each five seconds of the last five minutes, the oldest first"),
        ),
    ];
    shown([own, waits()].concat_fields())
}

fn standings() -> Schema {
    shown(vec![
        need("services", list(shape("Standing"))),
        need("nextPageToken", text().says("`page_token` of the next page; empty if this is the last")),
        need("total", count(0).says("How many there are on all pages")),
    ])
}

fn point() -> Schema {
    let took = || number().or_null().says("Null if nothing was sent");
    shown(vec![
        need("at", time().says("When it ended")),
        need("seconds", count(1).says("How long it lasted; the last one may have just begun")),
        need("events", count(0).or_null().says("Events that came in; null if it is about one service")),
        need("sends", count(0).says("Requests that were sent: deliveries, calls, and their retries")),
        need("delivered", count(0)),
        need("failed", count(0).says("Deliveries that were given up")),
        need("retried", count(0).says("Deliveries that failed and will be tried again")),
        need("p50Ms", took()),
        need("p95Ms", took()),
        need(
            "errors",
            shown(CLASSES.iter().map(|class| may_say(class, count(0))).collect())
                .says("Sends that failed, by class"),
        ),
    ])
}

fn history() -> Schema {
    shown(vec![
        need("secondsPerPoint", count(1)),
        need("points", list(shape("Point")).says("The oldest first; fewer while the hub is young")),
    ])
}
