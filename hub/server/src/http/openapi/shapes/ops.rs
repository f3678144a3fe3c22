//! Metrics and the description itself.

use serde_json::json;

use super::super::schema::{any, between, list, need, number, shape, shown, switch, text};
use super::NamedSchema;

pub(super) fn shapes() -> Vec<NamedSchema> {
    let measured = shown(vec![need("statistic", text()), need("value", number().or_null())]);
    let tag = shown(vec![need("tag", text()), need("values", list(text()))]);
    vec![
        (
            "MetricNames",
            shown(vec![need("names", list(text()))]).like(json!({"names": ["seawall.deliveries"]})),
        ),
        (
            "ErrorEntry",
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
                need("x-errors", list(shape("ErrorEntry"))),
            ]),
        ),
    ]
}
