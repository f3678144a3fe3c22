//! The named schemas that no wire type has: CloudEvents, and the description itself.

use serde_json::{Map, Value, json};

use super::schema::{
    Schema, any, between, format, list, may, need, pattern, shape, shown, switch, text, time, word,
};

/// All named schemas.
pub(super) fn all() -> Map<String, Value> {
    let all = [("CloudEvent", cloud_event()), ("ErrorEntry", error_entry()), ("OpenApi", description())];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema.into_value())).collect()
}

/// The name of something that is registered.
pub(super) fn slug() -> Schema {
    pattern("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$").says("Lower-case letters, digits and inner hyphens")
}

pub(super) fn fingerprint() -> Schema {
    pattern("^grp_[0-9a-f]{16}$")
}

pub(super) fn operation_id() -> Schema {
    pattern("^op_[0-9a-f]{32}$")
}

/// The word of an event type: visible ASCII characters without dot and star.
const WORD: &str = r"[!-)+,\-/-~]+";

fn cloud_event() -> Schema {
    let event_type = pattern(&format!(r"^{WORD}(\.{WORD})*$"))
        .longest(255)
        .says("Words separated by dots: visible ASCII characters without asterisks");
    let schema = shown(vec![
        need("specversion", word("1.0")),
        need("id", pattern("^[!-~]{1,200}$").says("Visible ASCII characters")),
        need("type", event_type),
        need("source", format("uri-reference").not_empty()),
        may("time", time().or_null()),
        may("subject", text().not_empty().or_null()),
        may("datacontenttype", text().not_empty().or_null()),
        may("dataschema", format("uri").not_empty().or_null()),
        may("data", any()),
        may("data_base64", text().or_null()),
    ]);
    schema
        .says("CloudEvents 1.0 as JSON. Other attributes are extensions")
        .like(json!({"specversion": "1.0", "id": "evt-1", "type": "order.created", "source": "/shop", "data": {"id": "A-7"}}))
}

fn error_entry() -> Schema {
    shown(vec![
        need("code", text()),
        need("status", between(400, 599)),
        need("retryable", switch()),
        need("meaning", text()),
        need("remedy", text()),
    ])
}

fn description() -> Schema {
    let parts = ["info", "paths", "components", "security", "tags"];
    let mut fields = vec![need("openapi", text())];
    fields.extend(parts.map(|part| need(part, any())));
    fields.push(need("x-errors", list(shape("ErrorEntry"))));
    shown(fields)
}
