//! The shape of CloudEvents.

use serde_json::json;

use super::super::schema::{Schema, any, format, may, need, shown, text, time, word};
use super::NamedSchema;
use super::common::{event_id, event_type};

pub(super) fn shapes() -> Vec<NamedSchema> {
    vec![("CloudEvent", cloud_event())]
}

fn cloud_event() -> Schema {
    let schema = shown(vec![
        need("specversion", word("1.0")),
        need("id", event_id()),
        need("type", event_type()),
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
