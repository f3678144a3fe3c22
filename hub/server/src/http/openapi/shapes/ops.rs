//! The description itself.

use super::super::schema::{any, between, list, need, shape, shown, switch, text};
use super::NamedSchema;

pub(super) fn shapes() -> Vec<NamedSchema> {
    vec![
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
