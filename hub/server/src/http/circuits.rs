//! Circuits of services.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri};
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::port::store::Store;
use seawall_hub_core::service::Move;
use serde_json::{Value, json};

use super::access::Caller;
use super::fields::Fields;
use super::reply::{missing, parse, refused, success, wrong_fields};
use super::services::{circuit_word, find};
use super::{Caught, split_verb};
use crate::hub::Hub;

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Caught {
    let Some(service) = find(&hub, &caller, &name) else { return Ok(missing("service")) };
    let history = match hub.store().circuit_history(&service.name, 50).await {
        Ok(history) => history,
        Err(error) => return Ok(super::reply::store_problem(&error)),
    };
    let guard = hub.guard(&service.name);
    let explained = guard.as_ref().map(seawall::Guard::explain);
    let Some(breaker) = guard.as_ref().and_then(|guard| guard.breaker()) else {
        let data = json!({"state": null, "note": "its policy has no breaker", "guard": explained});
        return Ok(success(StatusCode::OK, &data));
    };
    let (counts, window) = (breaker.counts(), breaker.window());
    let moves: Vec<Value> = history
        .iter()
        .map(|circuit| {
            json!({
                "state": circuit.state.word(), "at": circuit.changed.to_string(), "reason": circuit.reason,
                "until": circuit.until.map(|until| until.to_string()),
                "failedProbes": circuit.trips.saturating_sub(1),
            })
        })
        .collect();
    let data = json!({
        "state": circuit_word(&hub, &service.name), "reason": hub.why_circuit(&service.name),
        "policy": breaker.explain(), "opened": counts.opened, "refused": counts.refused,
        "window": {"calls": window.calls, "failures": window.failures, "slow": window.slow}, "history": moves,
        "guard": explained,
    });
    Ok(success(StatusCode::OK, &data))
}

/// `POST …/circuit:reset`, `:forceOpen`, `:forceClosed`, with a reason: the last part of the path says which.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    uri: Uri,
    body: Bytes,
) -> Caught {
    let how = match split_verb(uri.path()) {
        Some((_, "reset")) => Move::Reset,
        Some((_, "forceOpen")) => Move::ForceOpen,
        Some((_, "forceClosed")) => Move::ForceClosed,
        _ => return Ok(super::nothing_here()),
    };
    let mut fields = Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? });
    let reason = fields.text("reason").unwrap_or_default();
    if how != Move::Reset && reason.trim().is_empty() {
        fields.wrong("reason", "whoever forces a circuit says why; the next one on duty will ask");
    }
    let problems = fields.end("reason");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let Some(Service { name, .. }) = find(&hub, &caller, &name) else { return Ok(missing("service")) };
    Ok(match hub.move_circuit(&name, how, &reason).await {
        Ok(()) => success(StatusCode::OK, &json!({"state": circuit_word(&hub, &name), "reason": reason})),
        Err(why) => refused(why, "service"),
    })
}
