//! Parameters in paths, queries and headers.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::components;
use super::schema::{Schema, pattern, text, words};
use super::shapes::{fingerprint, operation_id, slug};
use crate::http::shape::{ordered, schemas_of};

/// The parameters of a query, by the schema of its type.
pub(crate) fn of_query<Q: JsonSchema + 'static>() -> Vec<Value> {
    let (read, written) = schemas_of::<Q>();
    let parameter = |(name, field): (&str, &Value)| {
        let mut schema = field.clone();
        components::parameter(&mut schema);
        let meaning = schema.as_object_mut().and_then(|words| words.remove("description"));
        json!({"name": name, "in": "query", "description": meaning, "schema": schema})
    };
    ordered(read, written).into_iter().map(parameter).collect()
}

/// A header by its name.
pub(super) fn header(name: &str) -> Value {
    let (schema, meaning) = match name {
        "If-Match" => (
            pattern(r#"^(\*|[0-9]{1,18}|"[0-9]{1,18}")$"#),
            "The expected version; if the current one differs, nothing is changed",
        ),
        "If-None-Match" => (words(&["*"]), "Only if the name does not exist yet"),
        "Idempotency-Key" => {
            (pattern("^[!-~]{1,200}$"), "Two requests with the same key are carried out once")
        }
        "traceparent" => (text(), "W3C trace context of the event; an invalid one is ignored"),
        _ => (text(), "Reason for the change, recorded in the audit log"),
    };
    written(name, "header", schema, meaning)
}

/// A parameter in a path.
pub(super) fn in_path(path: &str, name: &str) -> Value {
    let (schema, meaning) = match name {
        "id" if path.contains("/events/") => (text().not_empty(), "Event id"),
        "id" if path.contains("/operations/") => (operation_id(), "Operation id"),
        "fingerprint" => (fingerprint(), "Group fingerprint"),
        "id" if path.contains("/alerts/") => (text().not_empty(), "Incident id"),
        "id" => (pattern("^dlv_[0-9a-f]{32}$"), "Delivery id"),
        "name" if path.starts_with("/actuator/") => (text().not_empty(), "Metric name"),
        "source" => (slug(), "Source name"),
        _ => (slug(), "Name"),
    };
    written(name, "path", schema, meaning)
}

fn written(name: &str, place: &str, schema: Schema, meaning: &str) -> Value {
    let mut value = json!({"name": name, "in": place, "description": meaning, "schema": schema.into_value()});
    if place == "path" {
        value["required"] = json!(true);
    }
    value
}
