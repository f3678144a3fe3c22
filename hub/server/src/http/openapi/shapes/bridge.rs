//! Events.

use seawall_hub_core::domain::delivery::DeliveryId;
use serde_json::json;

use super::super::schema::{
    Field, Schema, any, count, format, list, map, may, need, one_of, shape, shown, switch, text, time, word,
    written,
};
use super::Named;
use super::common::{delivery_id, event_id, event_type};
use crate::source::cloudevents::BATCH_MAX;

pub(super) fn shapes() -> Vec<Named> {
    vec![
        ("EventInput", event_input(need("id", id()))),
        ("EventInBatch", event_input(need("id", text().says("As of an event that comes alone; with one that can't be one, this event is refused and the others are not")))),
        (
            "EventInputWithKey",
            event_input(may("id", id())).says("An event. With `Idempotency-Key` it may come without an id"),
        ),
        (
            "EventBatch",
            written(vec![need("events", list(shape("EventInBatch")).at_most(BATCH_MAX))])
                .says("Nothing of a batch with mistakes is kept")
                .like(json!({"events": [{"id": "evt-1", "type": "order.created"}]})),
        ),
        ("CloudEvent", cloud_event()),
        ("Accepted", accepted()),
        ("BatchAccepted", batch_accepted()),
        ("Event", event()),
        ("EventPage", page("events", shape("Event"))),
    ]
}

/// A page of a list.
pub(super) fn page(name: &'static str, of: Schema) -> Schema {
    let next = text().says("`page_token` of the next page; empty if this is the last. A page may be short, or empty, and not be the last");
    shown(vec![need(name, list(of)), need("nextPageToken", next)])
}

fn id() -> Schema {
    event_id().says("Which event it is: of the same id only one is kept")
}

fn event_input(id: Field) -> Schema {
    written(vec![
        id,
        need("type", event_type()),
        may("source", text().usually(json!("api"))),
        may("time", time().says("When it happened; without it when it was accepted")),
        may("subject", text()),
        may("data", any().says("What it is about, nested no deeper than 100")),
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
        .says("CloudEvents 1.0, as JSON. Other attributes are its extensions")
        .like(json!({"specversion": "1.0", "id": "evt-1", "type": "order.created", "source": "/shop", "data": {"id": "A-7"}}))
}

fn accepted() -> Schema {
    let id = DeliveryId { era: 1, number: 7 }.to_string();
    shown(vec![
        need("id", text().says("That of the first, if it was there before under the same key")),
        need("deliveries", list(delivery_id()).says("What it led to")),
        need("deduplicated", switch().says("It was there before, with the same content")),
        need("filtered", count(0).says("So many rules did not want it")),
        need("unmatched", switch().says("No rule is for its type")),
        need("held", count(0).says("So many deliveries wait for a rule that is disabled")),
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
            list(one_of(vec![shape("Accepted"), refused])).says("One for each event, in their order"),
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
        may("extensions", map(any()).says("Of CloudEvents")),
        need("data", any()),
    ]);
    shown(vec![
        need("event", event.says("As rules see it, and as it is sent without a body of their own")),
        need("acceptedAt", time()),
        need("trace", text().or_null().says("The trace that it belongs to, as `traceparent` has it")),
        need("rulesConsidered", count(0)),
        need("rulesFiltered", count(0)),
        need("unmatched", switch()),
    ])
}
