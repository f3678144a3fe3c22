//! Rules, and trying them.

use serde_json::json;

use super::super::schema::{
    Field, Schema, any, between, count, list, map, may, need, one_of, shape, shown, switch, text, time, word,
    words, written,
};
use super::Named;
use super::common::{duration, event_id, event_pattern, headers, slug};
use super::services::{Concat as _, ignored};

pub(super) fn shapes() -> Vec<Named> {
    let example = json!({
        "name": "invoices", "eventType": "order.*", "filter": "data.total > 100", "service": "billing", "method": "POST",
        "path": "/invoices/{{ data.id }}", "headers": {"x-order": "{{ data.id }}"},
        "body": {"order": "{{ data.id }}", "amount": "{{ data.total }}"},
    });
    let named = || may("name", slug().says("The same as in the path, if at all"));
    vec![
        (
            "RuleInput",
            written([vec![need("name", slug())], settings(true)].concat_fields())
                .says("Which events it takes, and the request that it makes of one")
                .like(example),
        ),
        (
            "RuleReplacement",
            written([vec![named()], settings(true)].concat_fields())
                .like(json!({"eventType": "order.created", "service": "billing"})),
        ),
        (
            "RuleChange",
            written([vec![named()], settings(false)].concat_fields())
                .says("What is named is changed, what is not stays, also within `delivery`, `headers` and `ordering`")
                .like(json!({"delivery": {"maxAttempts": 20}})),
        ),
        ("DeliveryInput", delivery_input()),
        ("Rule", rule()),
        ("Request", request()),
        ("EvaluateInput", evaluate()),
        ("Evaluation", evaluation(&[])),
        ("BacktestInput", backtest()),
        ("Backtest", backtest_result()),
        ("RollbackInput", written(vec![need("version", count(1))]).like(json!({"version": 3}))),
    ]
}

fn template(meaning: &str) -> Schema {
    text().says(meaning)
}

fn settings(whole: bool) -> Vec<Field> {
    let either = |name, schema| if whole { need(name, schema) } else { may(name, schema) };
    let ordering = written(vec![
        need("key", template("A template: deliveries with the same key go out one after the other")),
        may(
            "onDeadLetter",
            words(&["continue", "hold"])
                .says("Whether one that fails holds those behind it")
                .usually(json!("continue")),
        ),
    ]);
    vec![
        either("eventType", event_pattern()),
        either("service", slug().says("Where the request goes")),
        may(
            "filter",
            template("A condition over `id`, `type`, `source`, `time`, `subject`, `extensions` and `data`"),
        ),
        may("method", text().says("GET, POST, PUT, PATCH, DELETE or HEAD").usually(json!("POST"))),
        may("path", template("A template, below the address of the service").usually(json!("/"))),
        may("headers", headers().says("Names, and templates of their values")),
        may(
            "body",
            any().says("A JSON value whose texts may hold expressions; without it the event as it came"),
        ),
        may("delivery", shape("DeliveryInput")),
        may("ordering", ordering),
        may("enabled", switch().says("What it matches is held while it is not").usually(json!(true))),
        may("version", count(0).says("As `If-Match`, which goes before it")),
        ignored("changedAt"),
        ignored("note"),
    ]
}

fn delivery_input() -> Schema {
    written(vec![
        may("maxAttempts", between(1, 1_000).says("Else what the policy of the service says")),
        may("maxAge", duration().says("After so long it is a dead letter")),
        may("base", duration().says("The first wait; it doubles with each failure, with chance in it")),
        may("cap", duration().says("The longest wait")),
        may(
            "count",
            words(&["answered", "all"])
                .says("Which failures count: those that the peer answered, or all")
                .usually(json!("answered")),
        ),
    ])
    .says("How long and how often it is tried")
    .like(json!({"maxAttempts": 10, "maxAge": "2d"}))
}

fn rule() -> Schema {
    let delivery = shown(vec![
        need("maxAttempts", count(1).or_null()),
        need("maxAge", duration()),
        need("base", duration()),
        need("cap", duration()),
        need("count", words(&["answered", "all"])),
    ]);
    let ordering = shown(vec![need("key", text()), need("onDeadLetter", words(&["continue", "hold"]))]);
    shown(vec![
        need("name", slug()),
        need("eventType", event_pattern()),
        need("filter", text().or_null()),
        need("service", slug()),
        need("method", text()),
        need("path", text()),
        need("headers", map(text())),
        need("body", any()),
        need("delivery", delivery),
        need("ordering", ordering.or_null()),
        need("enabled", switch()),
        need("version", count(1).says("Goes up with every change; also in the header `ETag`")),
        need("changedAt", time()),
        need("note", text().or_null().says("Why it is disabled")),
    ])
}

fn request() -> Schema {
    shown(vec![
        need("method", text()),
        need("path", text()),
        need("headers", map(text())),
        need("url", text().or_null().says("Null if there is no such service")),
        need("body", any().says("If it is JSON")),
        need("bodyText", text().or_null().says("The bytes that are sent")),
    ])
    .says("A request as it is on the wire, but for what is secret")
}

fn evaluate() -> Schema {
    written(vec![
        may("rule", shape("RuleInput").says("A whole rule; or")),
        may("ruleName", slug().says("one that is kept")),
        may("event", shape("EventInput").says("A sample; or")),
        may("eventId", event_id().says("one that is kept")),
    ])
    .says("One of `rule` and `ruleName`, and one of `event` and `eventId`")
    .like(json!({"ruleName": "invoices", "event": {"id": "evt-1", "type": "order.created", "data": {"total": 120.5}}}))
}

/// What a rule makes of an event, with these fields more.
fn evaluation(more: &[(&'static str, Schema)]) -> Schema {
    let of = |outcome: &str, fields: Vec<Field>| {
        let first = vec![need("outcome", word(outcome))];
        let more = more.iter().map(|(name, schema)| need(name, schema.clone())).collect();
        shown([first, more, fields].concat_fields())
    };
    let reason = || text().or_null().says("If the event lacks something");
    one_of(vec![
        of("otherType", vec![]),
        of("filtered", vec![need("reason", reason())]),
        of("unrenderable", vec![need("field", text()), need("reason", text())]),
        of("request", vec![need("request", shape("Request")), need("orderingKey", text().or_null())]),
    ])
}

fn backtest() -> Schema {
    written(vec![
        may("max", between(1, 1_000).says("So many events, the newest first").usually(json!(100))),
        may("rule", shape("RuleReplacement").says("Another rule in place of the one that is kept")),
    ])
    .like(json!({"max": 100}))
}

fn backtest_result() -> Schema {
    shown(vec![
        need("events", count(0).says("So many of its type were looked at")),
        need("filtered", count(0)),
        need("unrenderable", count(0).says("Those would be dead letters")),
        need("requests", count(0)),
        need("samples", list(evaluation(&[("event", event_id())])).says("The first ten")),
    ])
}
