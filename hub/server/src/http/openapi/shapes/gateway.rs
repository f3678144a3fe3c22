//! Calls through the guard of a service.

use serde_json::json;

use super::super::schema::{
    Schema, any, between, count, list, map, may, need, number, one_of, pattern, shown, switch, text, words,
    written,
};
use super::Named;
use super::common::{delivery_id, headers};
use super::services::state;

pub(super) fn shapes() -> Vec<Named> {
    vec![("CallInput", input()), ("Answer", answer()), ("CallKept", kept())]
}

fn input() -> Schema {
    let one = || one_of(vec![text(), number(), switch()]);
    let texts = one_of(vec![text(), number(), switch(), list(one())]);
    written(vec![
        may("method", text().usually(json!("GET"))),
        may("path", pattern("^/").says("Below the address of the service").usually(json!("/"))),
        may(
            "query",
            one_of(vec![text(), map(texts)])
                .says("Names with values or lists of them, or a text that is encoded already"),
        ),
        may("headers", headers()),
        may("body", any().says("JSON; a text goes as it is if `content-type` says that it is no JSON")),
        may(
            "bodyEncoding",
            words(&["json", "text", "base64"]).says("What `body` is; without it by its type"),
        ),
        may(
            "mode",
            words(&["sync", "async", "sync_or_queue"])
                .says("Now, later, or now and otherwise later")
                .usually(json!("sync")),
        ),
        may("timeoutMs", between(1, 600_000)),
    ])
    .like(json!({"method": "GET", "path": "/invoices/7"}))
}

fn answer() -> Schema {
    shown(vec![
        need("httpStatus", between(100, 999)),
        need(
            "headers",
            map(one_of(vec![text(), list(text())])).says("One that came more than once is a list"),
        ),
        need("body", any()),
        need("bodyEncoding", words(&["json", "text", "base64"])),
        need("attempts", count(0)),
        need("latencyMs", count(0)),
        need("circuit", state().or_null()),
        need("fallback", switch()),
    ])
    .says("What the service answered, whatever its status")
}

fn kept() -> Schema {
    shown(vec![
        need("id", text().says("The event that it is kept as")),
        need("deliveries", list(delivery_id())),
        need("delivery", delivery_id().or_null()),
        need("deduplicated", switch()),
        need("circuit", state().or_null()),
        may("attempts", count(0).says("If it was tried before")),
        may("latencyMs", count(0)),
        may("why", text().says("Why it could not be had now")),
    ])
    .says("A call that is kept, and delivered later")
}
