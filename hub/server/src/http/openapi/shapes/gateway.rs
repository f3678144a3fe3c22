//! Calls through the policies of a service.

use serde_json::json;

use super::super::schema::{
    Schema, any, between, count, list, map, may, need, number, one_of, pattern, shown, switch, text, words,
    written,
};
use super::NamedSchema;
use super::common::{delivery_id, headers};
use super::services::state;

pub(super) fn shapes() -> Vec<NamedSchema> {
    vec![("CallInput", input()), ("CallResponse", answer()), ("QueuedCall", kept())]
}

fn input() -> Schema {
    let one = || one_of(vec![text(), number(), switch()]);
    let texts = one_of(vec![text(), number(), switch(), list(one())]);
    written(vec![
        may("method", text().usually(json!("GET"))),
        may("path", pattern("^/").says("Path below the address of the service").usually(json!("/"))),
        may(
            "query",
            one_of(vec![text(), map(texts)])
                .says("Object of names with values or lists of values, or an encoded string"),
        ),
        may("headers", headers()),
        may("body", any().says("JSON; a string is sent as is if `content-type` is not JSON")),
        may(
            "bodyEncoding",
            words(&["json", "text", "base64"]).says("Encoding of `body`; the default depends on its type"),
        ),
        may(
            "mode",
            words(&["sync", "async", "sync_or_queue"])
                .says("Call now, queue the call, or queue it if the call fails")
                .usually(json!("sync")),
        ),
        may("timeoutMs", between(1, 600_000)),
    ])
    .like(json!({"method": "GET", "path": "/invoices/7"}))
}

fn answer() -> Schema {
    shown(vec![
        need("httpStatus", between(100, 999)),
        need("headers", map(one_of(vec![text(), list(text())])).says("A repeated header is a list")),
        need("body", any()),
        need("bodyEncoding", words(&["json", "text", "base64"])),
        need("attempts", count(0)),
        need("latencyMs", count(0)),
        need("circuit", state().or_null()),
        need("fallback", switch()),
    ])
    .says("Response of the service, whatever its status")
}

fn kept() -> Schema {
    shown(vec![
        need("id", text().says("Id of the event that stores the call")),
        need("deliveries", list(delivery_id())),
        need("delivery", delivery_id().or_null()),
        need("deduplicated", switch()),
        need("circuit", state().or_null()),
        may("attempts", count(0).says("Attempts before it was queued")),
        may("latencyMs", count(0)),
        may("why", text().says("Reason for which it was queued")),
    ])
    .says("A queued call, which is delivered later")
}
