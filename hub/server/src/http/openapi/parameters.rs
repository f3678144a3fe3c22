//! Parameters in paths, queries and headers.

use serde_json::{Value, json};

use super::schema::{Schema, between, count, list, pattern, switch, text, time, words};
use super::shapes::{event_pattern, fingerprint, operation_id, reasons, slug, states_asked_for};

/// The states of dead letters, separated by commas.
const STANDINGS: &str = "^(open|replaying|delivered|failedAgain|parked|deleted)(,(open|replaying|delivered|failedAgain|parked|deleted))*$";
const GROUP_STATES: &str = "^(open|acknowledged|resolved)(,(open|acknowledged|resolved))*$";

/// A parameter by its name.
pub(super) fn parameter(name: &str) -> Value {
    let (place, schema, meaning) = match name {
        "page_size" => ("query", between(1, 500).usually(json!(50)), "Maximum number of items per page"),
        "page_token" => (
            "query",
            pattern("^[0-9a-z]{0,12}$"),
            "`nextPageToken` of the previous page; empty for the first page",
        ),
        "type" => ("query", event_pattern(), "Only events of this type"),
        "source" => ("query", text().not_empty(), "Only events from this source"),
        "replayed" => ("query", switch(), "Only those that were replayed (true) or not (false)"),
        "unmatched" => ("query", switch(), "Only events that no rule matched"),
        "service" => ("query", slug(), "Only for this service"),
        "rule" => ("query", slug(), "Only of this rule"),
        "event" => ("query", text().not_empty(), "Only of the event with this id"),
        "state" => ("query", states_asked_for(), "Only in this state; `open` means all in progress"),
        "reason" => ("query", reasons(), "Only those dead-lettered for this reason"),
        "search" => ("query", text().not_empty(), "Only those with this text in their name or address"),
        "circuit" => (
            "query",
            words(&["closed", "halfOpen", "open", "forcedOpen", "forcedClosed"]),
            "Only those whose circuit is in this state",
        ),
        "sort" => {
            ("query", words(&["name", "trouble"]).usually(json!("name")), "Sort by name, or problems first")
        }
        "minutes" => (
            "query",
            words(&["5", "60"]).usually(json!("5")),
            "Time range: 5 minutes in points of 5 seconds, or 60 minutes in points of 30 seconds",
        ),
        "status" => ("query", between(100, 999), "Only those whose last response had this status"),
        "group" => ("query", fingerprint(), "Only of this group"),
        "standing" => (
            "query",
            pattern(STANDINGS),
            "Only those in these states, separated by commas: open, replaying, delivered, failedAgain, parked, deleted",
        ),
        "groupState" => {
            return written(
                "state",
                "query",
                pattern(GROUP_STATES),
                "Only those in these states, separated by commas: open, acknowledged, resolved",
            );
        }
        "since" => ("query", time(), "Only those dead-lettered at this time or later"),
        "until" => ("query", time(), "Only those dead-lettered before this time"),
        "q" => (
            "query",
            text().not_empty().longest(1_000),
            "Only those with these words in the event, errors, responses or names; quotes match a phrase",
        ),
        "max" => ("query", count(1), "Maximum number"),
        "incidentState" => ("query", words(&["open", "resolved"]), "Only those in this state"),
        "severity" => ("query", words(&["warning", "critical"]), "Only those of this severity"),
        "alertRule" => ("query", slug(), "Only those of this alert rule"),
        "pending" => {
            let words = words(&["refuse", "deadLetter"]).usually(json!("refuse"));
            ("query", words, "What to do with pending deliveries: refuse to delete, or dead-letter them")
        }
        "tag" => ("query", list(pattern("^[^:]+:")), "Only series with this label, as `name:value`"),
        "If-Match" => (
            "header",
            pattern(r#"^(\*|[0-9]{1,18}|"[0-9]{1,18}")$"#),
            "The expected version; if the current one differs, nothing is changed",
        ),
        "If-None-Match" => ("header", words(&["*"]), "Only if the name does not exist yet"),
        "Idempotency-Key" => {
            ("header", pattern("^[!-~]{1,200}$"), "Two requests with the same key are carried out once")
        }
        "traceparent" => ("header", text(), "W3C trace context of the event; an invalid one is ignored"),
        _ => ("header", text(), "Reason for the change, recorded in the audit log"),
    };
    // Two lists use the same parameter name with different meanings.
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
