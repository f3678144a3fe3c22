//! Circuits of services.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use seawall_api::{Circuit, CircuitChange, CircuitDetails, CircuitMove, CircuitWindow, Reason};
use seawall_hub_core::domain;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::service::CircuitCommand;

use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::registry::services::{circuit_word, find};
use crate::http::reply::{missing, refused, success};
use crate::http::{HandlerResult, split_verb};

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> HandlerResult {
    let Some(service) = find(&cx.hub, &cx.caller, &name) else { return Ok(missing("service")) };
    let history = match cx.hub.gateway.circuit_history(&service.name, 50).await {
        Ok(history) => history,
        Err(error) => return Ok(crate::http::reply::store_problem(&error)),
    };
    let guard = cx.hub.gateway.guard(&service.name);
    let explained = guard.as_ref().map(seawall::Guard::explain);
    let Some(breaker) = guard.as_ref().and_then(|guard| guard.breaker()) else {
        let note = Some("its policy has no circuit breaker".to_owned());
        return Ok(success(StatusCode::OK, &Circuit { state: None, note, details: None, guard: explained }));
    };
    let (counts, window) = (breaker.counts(), breaker.window());
    let moved = |circuit: &domain::circuit::Circuit| CircuitMove {
        state: circuit.state.word().into(),
        at: circuit.changed.to_string().into(),
        reason: circuit.reason.clone(),
        until: circuit.until.map(|until| until.to_string().into()),
        failed_probes: circuit.trips.saturating_sub(1).into(),
    };
    let details = CircuitDetails {
        reason: cx.hub.gateway.why_circuit(&service.name),
        policy: breaker.explain().to_owned(),
        opened: counts.opened,
        refused: counts.refused,
        window: CircuitWindow { calls: window.calls, failures: window.failures, slow: window.slow },
        history: history.iter().map(moved).collect(),
    };
    let state = circuit_word(&cx.hub, &service.name).map(Into::into);
    Ok(success(StatusCode::OK, &Circuit { state, note: None, details: Some(details), guard: explained }))
}

/// `POST …/circuit:reset`, `:forceOpen`, `:forceClosed`, with a reason: the last part of the path says which.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(name): Path<String>,
    uri: Uri,
    body: Bytes,
) -> HandlerResult {
    let how = match split_verb(uri.path()) {
        Some((_, "reset")) => CircuitCommand::Reset,
        Some((_, "forceOpen")) => CircuitCommand::ForceOpen,
        Some((_, "forceClosed")) => CircuitCommand::ForceClosed,
        _ => return Ok(crate::http::nothing_here()),
    };
    let mut input = Input::<Reason>::optional(&body)?;
    let reason = input.get::<String>("reason").unwrap_or_default();
    if how != CircuitCommand::Reset && reason.trim().is_empty() && !input.has_problem_with("reason") {
        input.wrong("reason", "required: a forced circuit needs a reason for other operators");
    }
    input.finish()?;
    let Some(Service { name, .. }) = find(&cx.hub, &cx.caller, &name) else { return Ok(missing("service")) };
    Ok(match cx.hub.gateway.move_circuit(&cx, &name, how, &reason).await {
        Ok(()) => {
            let state = circuit_word(&cx.hub, &name).map(Into::into);
            success(StatusCode::OK, &CircuitChange { state, reason })
        }
        Err(why) => refused(why, "service"),
    })
}
