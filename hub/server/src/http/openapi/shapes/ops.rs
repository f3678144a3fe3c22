//! Operations: how the hub is, and who has changed what.

use serde_json::json;

use super::super::schema::{any, between, list, need, number, shape, shown, switch, text, time, word};
use super::Named;
use super::bridge::page;
use super::services::state;

pub(super) fn shapes() -> Vec<Named> {
    let entry = shown(vec![
        need("at", time()),
        need("who", text().says("The name of the key")),
        need("action", text()),
        need("target", text()),
        need("reason", text().or_null().says("What `X-Seawall-Reason` said")),
        need("traceId", text().or_null()),
    ]);
    let circuit = shown(vec![need("service", text()), need("circuit", state())]);
    let measured = shown(vec![need("statistic", text()), need("value", number().or_null())]);
    let tag = shown(vec![need("tag", text()), need("values", list(text()))]);
    vec![
        ("AuditEntry", entry),
        ("AuditPage", page("entries", shape("AuditEntry"))),
        (
            "SecretsRotated",
            shown(vec![
                need("key", between(1, u64::from(u32::MAX)).says("The number of the key that seals now")),
                need("resealed", between(0, 1_000_000).says("How many secrets were sealed anew")),
                need(
                    "unreadable",
                    list(text()).says("Whose could not be opened; the keys before stay while there are such"),
                ),
            ]),
        ),
        ("Up", shown(vec![need("state", word("up"))])),
        ("Health", shown(vec![need("state", word("up")), need("circuitsNotClosed", list(circuit))])),
        (
            "MetricNames",
            shown(vec![need("names", list(text()))]).like(json!({"names": ["seawall.deliveries"]})),
        ),
        (
            "PageError",
            shown(vec![
                need("code", text()),
                need("status", between(400, 599)),
                need("retryable", switch()),
                need("meaning", text()),
                need("remedy", text()),
            ]),
        ),
        (
            "Metric",
            shown(vec![
                need("name", text()),
                need("description", text().or_null()),
                need("baseUnit", text().or_null()),
                need("measurements", list(measured)),
                need("availableTags", list(tag)),
            ]),
        ),
        (
            "OpenApi",
            shown(vec![
                need("openapi", text()),
                need("info", any()),
                need("paths", any()),
                need("components", any()),
                need("security", any()),
                need("tags", any()),
                need("x-errors", list(shape("PageError"))),
            ]),
        ),
    ]
}
