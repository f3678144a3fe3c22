//! What comes to the dead letter desk.

use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, may, need, one_of, pattern, shape, switch, text, time, words,
    written,
};
use super::Named;
use super::common::{delivery_id, headers, slug};
use super::deliveries::reasons;
use super::desk::{fingerprint, standings};
use super::services::Concat as _;

pub(super) fn shapes() -> Vec<Named> {
    let note = || text().or_null().longest(4_000).says("Null takes it away");
    let some = json!({"filter": {"service": "billing"}, "dryRun": true});
    vec![
        ("ReplayInput", written([mode(), again(), why()].concat_fields()).like(json!({"mode": "render"}))),
        ("EditInput", edit()),
        (
            "NoteInput",
            written([vec![need("note", note())], why()].concat_fields()).like(json!({"note": "#4711"})),
        ),
        ("WhyInput", written(why()).like(json!({"reason": "the peer is mended"}))),
        (
            "SettleInput",
            written([vec![may("note", text().longest(4_000))], why()].concat_fields())
                .like(json!({"note": "#4711"})),
        ),
        ("DeadLetterFilter", filter()),
        ("ReplayManyInput", written([which(), plan(), some_of(), why()].concat_fields()).like(some.clone())),
        (
            "ReplayGroupInput",
            written([plan(), some_of(), why()].concat_fields()).like(json!({"dryRun": true})),
        ),
        ("ManyInput", written([which(), some_of(), why()].concat_fields()).like(some)),
        ("PurgeInput", purge()),
    ]
}

fn why() -> Vec<Field> {
    vec![may("reason", text().says("For the audit log; it comes before `X-Seawall-Reason`"))]
}

fn mode() -> Vec<Field> {
    let words = words(&["render", "same"]).says("`render`: again by today's rule; `same`: the same bytes");
    vec![may("mode", words.usually(json!("render")))]
}

fn again() -> Vec<Field> {
    vec![may("again", switch().says("Also if it was replayed before").usually(json!(false)))]
}

fn edit() -> Schema {
    let request = written(vec![
        may("method", text()),
        may("path", pattern("^/").says("With its query")),
        may("headers", headers().says("All of them, in place of those before")),
        may(
            "body",
            any().says("JSON; a text goes as it is if `content-type` says that it is no JSON; null for none"),
        ),
    ]);
    let fields = vec![
        may("data", any().says("Of the event: it is rendered anew by today's rule")),
        may("request", request.says("Parts of the request; what is not named stays")),
        may("dryRun", switch().says("Only show what it would be").usually(json!(false))),
    ];
    written([fields, again(), why()].concat_fields())
        .says("Either `data` or `request`")
        .like(json!({"request": {"path": "/invoices/8"}, "dryRun": true}))
}

fn filter() -> Schema {
    let standing = one_of(vec![text(), list(standings())]);
    written(vec![
        may("service", slug()),
        may("rule", slug()),
        may("event", text().says("The id of an event")),
        may("reason", reasons()),
        may("status", between(100, 999).says("The last one")),
        may("group", fingerprint()),
        may("standing", standing.says("A list, or words with commas; without it what the task is for")),
        may("since", time().says("Given up then or later")),
        may("until", time().says("Given up before")),
        may("q", text().longest(1_000).says("Words in the event, the errors, the answers or the names")),
        may("replayed", switch()),
        may("ids", list(delivery_id()).some().at_most(1_000)),
    ])
    .says("Which dead letters; all, if it is empty")
    .like(json!({"service": "billing", "status": 422}))
}

fn which() -> Vec<Field> {
    vec![need("filter", shape("DeadLetterFilter"))]
}

fn some_of() -> Vec<Field> {
    vec![
        may("max", count(1).says("So many at most")),
        may("dryRun", switch().says("Only say how many, and show some").usually(json!(false))),
    ]
}

fn plan() -> Vec<Field> {
    let canary = one_of(vec![switch(), list(count(1)).some().at_most(8)]);
    let rate = vec![
        may("ratePerSecond", between(1, 10_000).usually(json!(50))),
        may(
            "canary",
            canary
                .says("So many first, then so many more, and the rest only if all of them are delivered at the first try; true for [1, 10]")
                .usually(json!(true)),
        ),
    ];
    [mode(), rate].concat_fields()
}

fn purge() -> Schema {
    let force = may(
        "force",
        switch().says("Without it nothing is purged: how many it would be is said").usually(json!(false)),
    );
    written([which(), vec![force, may("max", count(1))], why()].concat_fields())
        .like(json!({"filter": {"standing": "deleted"}, "force": false}))
}
