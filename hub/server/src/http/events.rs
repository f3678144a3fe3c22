//! Events in, and what became of them.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::domain::delivery::{self, DeliveryId};
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::service::{Incoming, NotAccepted};
use serde_json::{Value, json};

use super::fields::Fields;
use super::registry::store_problem;
use super::{parse, problem, success, wrong_fields};
use crate::hub::Hub;

pub(super) async fn accept(State(hub): State<Arc<Hub>>, body: Bytes) -> Response {
    let mut fields = match parse(&body) {
        Ok(value) => Fields::new(value),
        Err(response) => return *response,
    };
    let (id, kind) = (fields.needed("id"), fields.needed("type"));
    let kind = fields.parsed("type", &kind, EventType::new);
    let source = fields.text("source").unwrap_or_else(|| "api".into());
    let time = fields.text("time").unwrap_or_default();
    let data = fields.any("data").unwrap_or(Value::Null);
    let problems = fields.end("id, type, source, time, data");
    let Some(kind) = kind.filter(|_| problems.is_empty()) else { return wrong_fields(&problems) };
    match hub.accept(Incoming { id: id.clone(), kind, source, time, data, trace: None }).await {
        Ok(accepted) => {
            let deliveries: Vec<String> = accepted.deliveries.iter().map(ToString::to_string).collect();
            let data = json!({
                "id": id, "deliveries": deliveries, "deduplicated": accepted.deduplicated,
                "filtered": accepted.tally.filtered,
            });
            success(StatusCode::ACCEPTED, &data)
        }
        Err(NotAccepted::Store(error)) => store_problem(&error),
        Err(error @ NotAccepted::OtherContent) => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "otherContent", &error.to_string(), false)
        }
        Err(error @ NotAccepted::BadId(_)) => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid", &error.to_string(), false)
        }
    }
}

pub(super) async fn event(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Response {
    match hub.event(&id).await {
        Ok(Some(event)) => {
            let whole: Value = serde_json::from_slice(&event.payload).unwrap_or_default();
            success(StatusCode::OK, &json!({"event": whole, "acceptedAt": event.accepted.0}))
        }
        Ok(None) => problem(StatusCode::NOT_FOUND, "notFound", "there is no event of this id", false),
        Err(error) => store_problem(&error),
    }
}

pub(super) async fn delivery(State(hub): State<Arc<Hub>>, Path(id): Path<String>) -> Response {
    let missing = || problem(StatusCode::NOT_FOUND, "notFound", "there is no delivery of this id", false);
    let Some(id) = DeliveryId::parse(&id) else { return missing() };
    let (kept, attempts) = match hub.delivery(id).await {
        Ok(Some(found)) => found,
        Ok(None) => return missing(),
        Err(error) => return store_problem(&error),
    };
    let state = match kept.state {
        delivery::State::Leased if hub.service(&kept.service).is_some_and(|service| service.paused) => "held",
        delivery::State::Leased if attempts.is_empty() => "pending",
        delivery::State::Leased => "inFlight",
        delivery::State::Waiting => "waiting",
        delivery::State::Delivered => "delivered",
        delivery::State::DeadLettered => "deadLettered",
    };
    let attempts: Vec<Value> = attempts
        .iter()
        .map(|attempt| {
            json!({
                "at": attempt.at.0, "tookMicros": attempt.took_micros, "status": attempt.status,
                "error": attempt.error, "answer": String::from_utf8_lossy(&attempt.answer),
            })
        })
        .collect();
    let data = json!({
        "id": id.to_string(), "state": state, "event": kept.event, "rule": kept.rule.0.as_str(),
        "ruleVersion": kept.rule.1, "service": kept.service.as_str(), "attempts": attempts,
        "reason": kept.reason.map(|reason| format!("{reason:?}")),
    });
    success(StatusCode::OK, &data)
}
