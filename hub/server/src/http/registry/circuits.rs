//! Circuits of services.

use axum::body::Bytes;
use axum::extract::Path;
use seawall_api::{Circuit, CircuitChange, CircuitDetails, CircuitMove, CircuitWindow, Reason};
use seawall_hub_core::domain;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::service::CircuitCommand;

use super::resource::find;
use super::services::circuit_word;
use crate::http::context::RequestContext;
use crate::http::error::refused;
use crate::http::input::Input;
use crate::http::reply::{ApiReply, ApiResult};

pub(crate) async fn get(cx: RequestContext, Path(name): Path<String>) -> ApiResult<Circuit> {
    let service = find::<Service>(&cx, &name)?;
    let history = cx.hub.gateway.circuit_history(&service.name, 50).await?;
    let guard = cx.hub.gateway.guard(&service.name);
    let explained = guard.as_ref().map(seawall::Guard::explain);
    let Some(breaker) = guard.as_ref().and_then(|guard| guard.breaker()) else {
        let note = Some("its policy has no circuit breaker".to_owned());
        return Ok(ApiReply::new(Circuit { state: None, note, details: None, guard: explained }));
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
    Ok(ApiReply::new(Circuit { state, note: None, details: Some(details), guard: explained }))
}

/// Defines a handler for each command: `POST …/circuit:reset` and so on.
macro_rules! commands {
    ($($name:ident => $command:expr;)+) => {$(
        pub(crate) async fn $name(
            cx: RequestContext,
            Path(name): Path<String>,
            body: Bytes,
        ) -> ApiResult<CircuitChange> {
            run(&cx, &name, &body, $command).await
        }
    )+};
}

commands! {
    reset => CircuitCommand::Reset;
    force_open => CircuitCommand::ForceOpen;
    force_closed => CircuitCommand::ForceClosed;
}

async fn run(
    cx: &RequestContext,
    name: &str,
    body: &Bytes,
    command: CircuitCommand,
) -> ApiResult<CircuitChange> {
    let mut input = Input::<Reason>::optional(body)?;
    let reason = input.get::<String>("reason").unwrap_or_default();
    if command != CircuitCommand::Reset && reason.trim().is_empty() && !input.has_problem_with("reason") {
        input.wrong("reason", "required: a forced circuit needs a reason for other operators");
    }
    input.finish()?;
    let Service { name, .. } = find(cx, name)?;
    cx.hub.gateway.move_circuit(cx, &name, command, &reason).await.map_err(refused("service"))?;
    let state = circuit_word(&cx.hub, &name).map(Into::into);
    Ok(ApiReply::new(CircuitChange { state, reason }))
}
