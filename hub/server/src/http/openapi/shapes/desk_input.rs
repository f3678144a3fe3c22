//! Request bodies of the dead letter routes.

use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, need, one_of, pattern, shape, switch, text, time, words,
    written,
};
use super::NamedSchema;
use super::common::{delivery_id, headers, slug};
use super::deliveries::reasons;
use super::desk::{fingerprint, standings};
use super::services::Concat as _;

pub(super) fn shapes() -> Vec<NamedSchema> {
    let note = || text().or_null().longest(4_000).says("Null removes it");
    let some = json!({"filter": {"service": "billing"}, "dryRun": true});
    vec![
        ("ReplayInput", written([mode(), again(), why()].concat_fields()).like(json!({"mode": "render"}))),
        ("EditInput", edit()),
        (
            "NoteInput",
            written([vec![need("note", note())], why()].concat_fields()).like(json!({"note": "#4711"})),
        ),
        ("ReasonInput", written(why()).like(json!({"reason": "the service is fixed"}))),
        (
            "GroupStateInput",
            written([vec![may("note", text().longest(4_000))], why()].concat_fields())
                .like(json!({"note": "#4711"})),
        ),
        ("DeadLetterFilter", filter()),
        ("ReplayManyInput", written([which(), plan(), some_of(), why()].concat_fields()).like(some.clone())),
        (
            "ReplayGroupInput",
            written([plan(), some_of(), why()].concat_fields()).like(json!({"dryRun": true})),
        ),
        ("BulkInput", written([which(), some_of(), why()].concat_fields()).like(some)),
        ("PurgeInput", purge()),
    ]
}

fn why() -> Vec<Field> {
    vec![may(
        "reason",
        text().says("Reason, recorded in the audit log; takes precedence over `X-Seawall-Reason`"),
    )]
}

fn mode() -> Vec<Field> {
    let words = words(&["render", "same"])
        .says("`render`: render with the current rule; `same`: send the original request");
    vec![may("mode", words.usually(json!("render")))]
}

fn again() -> Vec<Field> {
    vec![may("again", switch().says("Allow a second replay").usually(json!(false)))]
}

fn edit() -> Schema {
    let request = written(vec![
        may("method", text()),
        may("path", pattern("^/").says("Path with its query")),
        may("headers", headers().says("Replaces all headers")),
        may(
            "body",
            any().says("JSON; a string is sent as is if `content-type` is not JSON; null for no body"),
        ),
    ]);
    let fields = vec![
        may("data", any().says("New event data; the request is rendered with the current rule")),
        may("request", request.says("Changes of the request; omitted parts stay")),
        may("dryRun", switch().says("Only return the differences").usually(json!(false))),
    ];
    written([fields, again(), why()].concat_fields())
        .says("Exactly one of `data` and `request`")
        .like(json!({"request": {"path": "/invoices/8"}, "dryRun": true}))
}

fn filter() -> Schema {
    let standing = one_of(vec![text(), list(standings())]);
    written(vec![
        may("service", slug()),
        may("rule", slug()),
        may("event", text().says("Event id")),
        may("reason", reasons()),
        may("status", between(100, 999).says("Status of the last response")),
        may("group", fingerprint()),
        may(
            "standing",
            standing.says("States, as a list or separated by commas; the default depends on the action"),
        ),
        may("since", time().says("Dead-lettered at this time or later")),
        may("until", time().says("Dead-lettered before this time")),
        may("q", text().longest(1_000).says("Words in the event, errors, responses or names")),
        may("replayed", switch()),
        may("ids", list(delivery_id()).some().at_most(1_000)),
    ])
    .says("Filter for dead letters; empty for all")
    .like(json!({"service": "billing", "status": 422}))
}

fn which() -> Vec<Field> {
    vec![need("filter", shape("DeadLetterFilter"))]
}

fn some_of() -> Vec<Field> {
    vec![
        may("max", count(1).says("Maximum number")),
        may("dryRun", switch().says("Only return the count and a sample").usually(json!(false))),
    ]
}

fn plan() -> Vec<Field> {
    let canary = one_of(vec![switch(), list(count(1)).some().at_most(8)]);
    let rate = vec![
        may("ratePerSecond", between(1, 10_000).usually(json!(50))),
        may(
            "canary",
            canary
                .says("Canary stages: the next stage starts only if every replay of the previous one is delivered on the first attempt; true for [1, 10]")
                .usually(json!(true)),
        ),
    ];
    [mode(), rate].concat_fields()
}

fn purge() -> Schema {
    let force = may(
        "force",
        switch().says("Purge; without it, only return the count and a sample").usually(json!(false)),
    );
    written([which(), vec![force, may("max", count(1))], why()].concat_fields())
        .like(json!({"filter": {"standing": "deleted"}, "force": false}))
}
