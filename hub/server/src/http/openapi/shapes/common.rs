//! What many shapes have in common.

use serde_json::json;

use super::super::errors::TROUBLES;
use super::super::schema::{Schema, any, list, need, pattern, shown, switch, text, word, words};
use super::Named;

pub(super) fn shapes() -> Vec<Named> {
    let mut codes: Vec<&str> = TROUBLES.iter().map(|trouble| trouble.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let wrong = shown(vec![
        need("field", text().says("Which one: `auth.type`, `events[3].id`; empty for the whole")),
        need("reason", text().says("What is wrong with it, for people")),
    ]);
    let error = shown(vec![
        need("status", word("error")),
        need("data", any().says("Null, but for calls: what is known all the same")),
        need("code", words(&codes).says("For programs: it never changes its meaning")),
        need("message", text().says("For people: it may change")),
        need("retryable", switch().says("Whether the same request may go well later")),
        need("errors", list(wrong).says("What is wrong, field by field")),
        need("traceId", text().says("By which the hub's log knows the request")),
    ]);
    let example = json!({
        "status": "error", "data": null, "code": "invalid", "message": "some fields are wrong; `errors` says which and why",
        "retryable": false, "errors": [{"field": "address", "reason": "it is missing"}],
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    let deleted = shown(vec![need("name", slug()), need("deleted", switch())]);
    vec![
        ("Error", error.says("What every answer looks like that is no success").like(example)),
        ("Deleted", deleted.like(json!({"name": "billing", "deleted": true}))),
    ]
}

/// The name of something that is registered.
pub(in super::super) fn slug() -> Schema {
    pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
        .says("Small letters, digits and hyphens, which stand between others")
}

/// The word of an event type: visible ASCII characters without dot and star.
const WORD: &str = r"[!-)+,\-/-~]+";

pub(super) fn event_type() -> Schema {
    pattern(&format!(r"^{WORD}(\.{WORD})*$"))
        .longest(255)
        .says("Words with dots between them: visible ASCII characters, no star")
}

pub(in super::super) fn event_pattern() -> Schema {
    pattern(&format!(r"^(\*|{WORD}(\.{WORD})*(\.\*)?)$"))
        .longest(257)
        .says("An event type, `order.*` for everything below `order`, or `*` for all")
}

pub(super) fn event_id() -> Schema {
    pattern("^[!-~]{1,200}$").says("Visible ASCII characters")
}

pub(super) fn delivery_id() -> Schema {
    pattern("^dlv_[0-9a-f]{32}$")
}

pub(super) fn duration() -> Schema {
    text().says("A number and a unit, ns to d: `30s`, `1m30s`, `1.5h`")
}

/// Headers, with small letters or not.
pub(super) fn headers() -> Schema {
    super::super::schema::map(text()).says("Names and values")
}
