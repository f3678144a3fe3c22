//! Shapes that others share.

use serde_json::json;

use super::super::schema::{Schema, any, list, need, pattern, shown, switch, text, word, words};
use super::NamedSchema;
use seawall_api::ERRORS;

pub(super) fn shapes() -> Vec<NamedSchema> {
    let mut codes: Vec<&str> = ERRORS.iter().map(|entry| entry.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let wrong = shown(vec![
        need(
            "field",
            text().says("Path of the field: `auth.type`, `events[3].id`; empty for the whole body"),
        ),
        need("reason", text().says("Reason, for people")),
    ]);
    let error = shown(vec![
        need("status", word("error")),
        need("data", any().says("Null, except for calls: what is known about the failed call")),
        need("code", words(&codes).says("For programs: the meaning never changes")),
        need("message", text().says("For people: the wording may change")),
        need("retryable", switch().says("True if a retry of the same request may succeed")),
        need("errors", list(wrong).says("Invalid fields with their reasons")),
        need("traceId", text().says("Id of the request in the hub's log")),
    ]);
    let example = json!({
        "status": "error", "data": null, "code": "invalid", "message": "some fields are invalid; see `errors`",
        "retryable": false, "errors": [{"field": "address", "reason": "required"}],
        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    });
    vec![("Error", error.says("The body of every error response").like(example))]
}

/// The name of something that is registered.
pub(in super::super) fn slug() -> Schema {
    pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$").says("Lower-case letters, digits and inner hyphens")
}

/// The word of an event type: visible ASCII characters without dot and star.
const WORD: &str = r"[!-)+,\-/-~]+";

pub(super) fn event_type() -> Schema {
    pattern(&format!(r"^{WORD}(\.{WORD})*$"))
        .longest(255)
        .says("Words separated by dots: visible ASCII characters without asterisks")
}

pub(super) fn event_id() -> Schema {
    pattern("^[!-~]{1,200}$").says("Visible ASCII characters")
}

pub(super) fn delivery_id() -> Schema {
    pattern("^dlv_[0-9a-f]{32}$")
}

pub(in super::super) fn fingerprint() -> Schema {
    pattern("^grp_[0-9a-f]{16}$")
}

pub(in super::super) fn operation_id() -> Schema {
    pattern("^op_[0-9a-f]{32}$")
}

/// Headers, with small letters or not.
pub(super) fn headers() -> Schema {
    super::super::schema::map(text()).says("Header names and values")
}
