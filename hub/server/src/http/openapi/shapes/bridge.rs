//! Shapes of events.

use seawall_hub_core::domain::delivery::DeliveryId;
use serde_json::json;

use super::super::schema::{
    Field, Schema, any, count, format, list, map, may, need, one_of, shape, shown, switch, text, time, word,
    written,
};
use super::NamedSchema;
use super::common::{delivery_id, event_id, event_type};
use crate::source::cloudevents::BATCH_MAX;

pub(super) fn shapes() -> Vec<NamedSchema> {
    vec![
        ("EventInput", event_input(need("id", id()))),
        (
            "EventInBatch",
            event_input(need(
                "id",
                text().says(
                    "As for a single event; an event with an invalid id is rejected without the others",
                ),
            )),
        ),
        (
            "EventInputWithKey",
            event_input(may("id", id())).says("An event. With `Idempotency-Key` the id is optional"),
        ),
        (
            "EventBatch",
            written(vec![need("events", list(shape("EventInBatch")).at_most(BATCH_MAX))])
                .says("A batch with invalid fields is rejected as a whole")
                .like(json!({"events": [{"id": "evt-1", "type": "order.created"}]})),
        ),
        ("CloudEvent", cloud_event()),
        ("AcceptedEvent", accepted()),
        ("AcceptedBatch", batch_accepted()),
        ("Event", event()),
        ("EventPage", page("events", shape("Event"))),
    ]
}

/// A page of a list.
pub(super) fn page(name: &'static str, of: Schema) -> Schema {
    let next = text().says("`page_token` of the next page; empty if this is the last. A page that is short or empty is not necessarily the last");
    shown(vec![need(name, list(of)), need("nextPageToken", next)])
}

fn id() -> Schema {
    event_id().says("Event id; an event with a known id is a duplicate")
}

fn event_input(id: Field) -> Schema {
    written(vec![
        id,
        need("type", event_type()),
        may("source", text().usually(json!("api"))),
        may("time", time().says("Event time; defaults to the time of acceptance")),
        may("subject", text()),
        may("data", any().says("Event data, nested at most 100 levels deep")),
    ])
    .like(json!({"id": "evt-1", "type": "order.created", "data": {"id": "A-7", "total": 120.5}}))
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

fn accepted() -> Schema {
    let id = DeliveryId::new(1, 7).to_string();
    shown(vec![
        need("id", text().says("Event id; that of the first event if the idempotency key was used before")),
        need("deliveries", list(delivery_id()).says("Ids of its deliveries")),
        need("deduplicated", switch().says("True for a duplicate of an accepted event")),
        need("filtered", count(0).says("Number of rules that filtered it out")),
        need("unmatched", switch().says("True if no rule matches its type")),
        need("held", count(0).says("Number of deliveries that wait for a disabled rule")),
    ])
    .like(json!({"id": "evt-1", "deliveries": [id], "deduplicated": false, "filtered": 0, "unmatched": false, "held": 0}))
}

fn batch_accepted() -> Schema {
    let error = shown(vec![
        need("code", super::super::schema::words(&["otherContent", "invalid"])),
        need("message", text()),
    ]);
    let refused = shown(vec![need("id", text()), need("error", error)]);
    shown(vec![
        need("accepted", count(0)),
        need("refused", count(0)),
        need(
            "results",
            list(one_of(vec![shape("AcceptedEvent"), refused]))
                .says("One result per event, in the same order"),
        ),
    ])
}

fn event() -> Schema {
    let event = shown(vec![
        need("id", text()),
        need("type", event_type()),
        need("source", text()),
        need("time", text()),
        may("subject", text()),
        may("extensions", map(any()).says("Extension attributes of CloudEvents")),
        need("data", any()),
    ]);
    shown(vec![
        need("event", event.says("The event as rules see it, and as the default request body")),
        need("acceptedAt", time()),
        need("trace", text().or_null().says("W3C trace context of the event")),
        need("rulesConsidered", count(0)),
        need("rulesFiltered", count(0)),
        need("unmatched", switch()),
    ])
}
