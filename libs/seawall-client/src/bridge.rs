//! Events, deliveries and calls.

use seawall_api::{
    AcceptedBatch, AcceptedEvent, CallInput, CallResult, DeliveryPage, DeliveryQuery, DeliveryWithAttempts,
    Event, EventBatch, EventInput, EventPage, EventQuery,
};
use serde::Serialize;

use crate::call::ApiCall;
use crate::client::Client;
use crate::json::JsonBody;
use crate::path::at;

const EVENTS: &str = "/api/v1/bridge/events";
const DELIVERIES: &str = "/api/v1/bridge/deliveries";
const GATEWAY: &str = "/api/v1/gateway/services";

impl Client {
    /// The events that the hub accepted.
    #[must_use]
    pub fn events(&self) -> EventsApi<'_> {
        EventsApi(self)
    }

    /// The deliveries of events.
    #[must_use]
    pub fn deliveries(&self) -> DeliveriesApi<'_> {
        DeliveriesApi(self)
    }

    /// Calls a service through its policies. The response of the service is a result, whatever its status. The call is sent
    /// again only with an [idempotency key](ApiCall::idempotency_key).
    pub fn call(&self, service: &str, input: &CallInput) -> ApiCall<CallResult> {
        ApiCall::post(self, at(GATEWAY, service, ":call")).json(input)
    }
}

/// Requests about events.
#[derive(Clone, Copy, Debug)]
pub struct EventsApi<'c>(pub(crate) &'c Client);

impl<'c> EventsApi<'c> {
    /// Sends an event. When the result is there, the event is on the disk. It is sent again if need be: the hub recognises its id,
    /// and an event without one has an idempotency key.
    pub fn send<D: Serialize>(self, event: &EventInput<D>) -> ApiCall<AcceptedEvent> {
        let call = ApiCall::post(self.0, EVENTS).json(event);
        if event.id.is_some() { call.idempotent() } else { call.keyed() }
    }

    /// Sends events in one write. Each has its own result; each needs an id, by which the hub recognises it if the batch is sent
    /// again.
    pub fn send_batch<D: Serialize>(
        self,
        events: impl Into<JsonBody<EventBatch<D>>>,
    ) -> ApiCall<AcceptedBatch> {
        ApiCall::post(self.0, format!("{EVENTS}:batchCreate")).json(events).idempotent()
    }

    /// Lists events, newest first.
    pub fn list(self, query: &EventQuery) -> ApiCall<EventPage> {
        ApiCall::get(self.0, EVENTS).query(query)
    }

    /// Reads an event.
    pub fn get(self, id: &str) -> ApiCall<Event> {
        ApiCall::get(self.0, at(EVENTS, id, ""))
    }
}

/// Requests about deliveries.
#[derive(Clone, Copy, Debug)]
pub struct DeliveriesApi<'c>(pub(crate) &'c Client);

impl DeliveriesApi<'_> {
    /// Lists deliveries, newest first.
    pub fn list(self, query: &DeliveryQuery) -> ApiCall<DeliveryPage> {
        ApiCall::get(self.0, DELIVERIES).query(query)
    }

    /// Reads a delivery with its attempts.
    pub fn get(self, id: &str) -> ApiCall<DeliveryWithAttempts> {
        ApiCall::get(self.0, at(DELIVERIES, id, ""))
    }
}
