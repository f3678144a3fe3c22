//! What stands in paths, after the question mark, and in headers.

use serde_json::{Value, json};

use super::schema::{Schema, between, count, list, pattern, switch, text, time, words};
use super::shapes::{event_pattern, fingerprint, operation_id, reasons, slug, states_asked_for};

/// Words with commas between them.
const STANDINGS: &str = "^(open|replaying|delivered|failedAgain|parked|deleted)(,(open|replaying|delivered|failedAgain|parked|deleted))*$";
const GROUP_STATES: &str = "^(open|acknowledged|resolved)(,(open|acknowledged|resolved))*$";

/// A parameter by its name, and where it stands.
pub(super) fn parameter(name: &str) -> Value {
    let (place, schema, meaning) = match name {
        "page_size" => ("query", between(1, 500).usually(json!(50)), "So many at most"),
        "page_token" => {
            ("query", pattern("^[0-9a-z]{0,12}$"), "`nextPageToken` of the page before; empty for the first")
        }
        "type" => ("query", event_pattern(), "Of this type"),
        "source" => ("query", text().not_empty(), "From this source"),
        "replayed" => ("query", switch(), "Only those that were replayed, or were not"),
        "unmatched" => ("query", switch(), "Only those that no rule is for"),
        "service" => ("query", slug(), "To this service"),
        "rule" => ("query", slug(), "Of this rule"),
        "event" => ("query", text().not_empty(), "Of the event with this id"),
        "state" => ("query", states_asked_for(), "In this state; `open` are all that have not ended"),
        "reason" => ("query", reasons(), "Dead for this reason"),
        "search" => ("query", text().not_empty(), "Only those with this in their name or address"),
        "circuit" => (
            "query",
            words(&["closed", "halfOpen", "open", "forcedOpen", "forcedClosed"]),
            "Only those whose circuit stands so",
        ),
        "sort" => (
            "query",
            words(&["name", "trouble"]).usually(json!("name")),
            "By name, or those first that need a look",
        ),
        "minutes" => (
            "query",
            words(&["5", "60"]).usually(json!("5")),
            "How far back: 5 in points of 5 seconds, or 60 in points of 30 seconds",
        ),
        "status" => ("query", between(100, 999), "With this last status"),
        "group" => ("query", fingerprint(), "Of this group"),
        "standing" => (
            "query",
            pattern(STANDINGS),
            "That stand there, several with commas: open, replaying, delivered, failedAgain, parked, deleted",
        ),
        "groupState" => {
            return written(
                "state",
                "query",
                pattern(GROUP_STATES),
                "That stand there, several with commas: open, acknowledged, resolved",
            );
        }
        "since" => ("query", time(), "Given up then or later"),
        "until" => ("query", time(), "Given up before"),
        "q" => (
            "query",
            text().not_empty().longest(1_000),
            "With these words in the event, the errors, the answers or the names; what is in quotes in this order",
        ),
        "max" => ("query", count(1), "So many at most"),
        "incidentState" => ("query", words(&["open", "resolved"]), "Only those that are open, or are not"),
        "severity" => ("query", words(&["warning", "critical"]), "As bad as this"),
        "alertRule" => ("query", slug(), "By this rule of alerts"),
        "pending" => {
            let words = words(&["refuse", "deadLetter"]).usually(json!("refuse"));
            ("query", words, "What happens to deliveries that have not ended")
        }
        "tag" => ("query", list(pattern("^[^:]+:")), "Only series with this label, as `name:value`"),
        "If-Match" => (
            "header",
            pattern(r#"^(\*|[0-9]{1,18}|"[0-9]{1,18}")$"#),
            "The version that you have seen; if it is another one now, nothing is changed",
        ),
        "If-None-Match" => ("header", words(&["*"]), "Only if there is none of this name yet"),
        "Idempotency-Key" => {
            ("header", pattern("^[!-~]{1,200}$"), "The same request with the same key is carried out once")
        }
        "traceparent" => {
            ("header", text(), "The trace that the event belongs to (W3C); one that is none is passed over")
        }
        _ => ("header", text(), "Why it is changed, for the audit log"),
    };
    // Two lists may call the same thing by the same name, and mean something else.
    let name = match name {
        "incidentState" => "state",
        "alertRule" => "rule",
        name => name,
    };
    written(name, place, schema, meaning)
}

/// A parameter in a path.
pub(super) fn in_path(path: &str, name: &str) -> Value {
    let (schema, meaning) = match name {
        "id" if path.contains("/events/") => (text().not_empty(), "The id of an event"),
        "id" if path.contains("/operations/") => (operation_id(), "The id of an operation"),
        "fingerprint" => (fingerprint(), "The fingerprint of a group"),
        "id" if path.contains("/alerts/") => (text().not_empty(), "The id of an incident"),
        "id" => (pattern("^dlv_[0-9a-f]{32}$"), "The id of a delivery"),
        "name" if path.starts_with("/actuator/") => (text().not_empty(), "The name of a metric"),
        "source" => (slug(), "The name of a source"),
        _ => (slug(), "Its name"),
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
