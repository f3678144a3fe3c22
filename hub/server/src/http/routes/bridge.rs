//! The routes of calls, events and deliveries.

use axum::routing::{get, post};
use seawall_api::{
    AcceptedBatch, AcceptedEvent, CallInput, CallResponse, DeliveryPage, DeliveryQuery, DeliveryWithAttempts,
    Event, EventBatch, EventInput, EventPage, EventQuery, QueuedCall,
};
use seawall_hub_core::domain::key::Scope;

use super::row::{GET, POST, Route, route};
use crate::http::bridge::{deliveries, events};
use crate::http::gateway;
use crate::http::openapi::schema::{list, shape};

/// Why a call may have no response.
const CALL_FAILS: &[&str] = &[
    "rateLimited",
    "circuitOpen",
    "bulkheadFull",
    "memoryFull",
    "responseDropped",
    "paused",
    "timeout",
    "noConnection",
    "broken",
    "impossible",
];
const CLOUD_EVENT: &str = "application/cloudevents+json";
const CLOUD_EVENTS: &str = "application/cloudevents-batch+json";

#[rustfmt::skip]
pub(super) fn routes() -> Vec<Route> {
    use Scope::{Call, Ingest, Read};
    vec![
        route(POST, "/api/v1/gateway/services/{name}:call", Call, "Call a service: synchronously, queued, or queued if the call fails", post(gateway::call))
            .takes::<CallInput>()
            .returns::<CallResponse>(200)
            .returns::<QueuedCall>(202)
            .with(&["Idempotency-Key", "traceparent"])
            .fails(&["badKey", "invalid", "otherContent"])
            .fails(CALL_FAILS)
            .more("The call goes through the policies of the service. See docs/gateway.md"),
        route(POST, "/api/v1/bridge/events", Ingest, "Accept an event", post(events::accept)).takes::<EventInput>()
            .takes_also(CLOUD_EVENT, shape("CloudEvent")).takes_also(CLOUD_EVENTS, list(shape("CloudEvent")))
            .returns_either::<AcceptedEvent, AcceptedBatch>(202)
            .with(&["Idempotency-Key", "traceparent"]).fails(&["badKey", "invalid", "otherContent"])
            .more("The event is on the disk before the response is sent, and duplicates are recognised by their id. CloudEvents are accepted in binary mode too: attributes in headers `ce-…`, data in the body. A batch gets the response of `:batchCreate`"),
        route(GET, "/api/v1/bridge/events", Read, "List events, newest first", get(events::list)).returns::<EventPage>(200).query::<EventQuery>().fails(&["invalid"]),
        route(POST, "/api/v1/bridge/events:batchCreate", Ingest, "Accept a batch of events", post(events::accept_batch)).takes::<EventBatch>()
            .takes_also(CLOUD_EVENTS, list(shape("CloudEvent")))
            .returns::<AcceptedBatch>(202).with(&["traceparent"]).fails(&["invalid"])
            .more("Each event is judged on its own; all are stored in one write. If the store rejects one of them, send the whole batch again"),
        route(GET, "/api/v1/bridge/events/{id}", Read, "Get an event", get(events::get)).returns::<Event>(200),
        route(GET, "/api/v1/bridge/deliveries", Read, "List deliveries, newest first", get(deliveries::list)).returns::<DeliveryPage>(200).query::<DeliveryQuery>().fails(&["invalid"]),
        route(GET, "/api/v1/bridge/deliveries/{id}", Read, "Get a delivery with its attempts", get(deliveries::get)).returns::<DeliveryWithAttempts>(200),
    ]
}
