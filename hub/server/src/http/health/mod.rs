//! The health of the hub and its metrics.

pub(crate) mod metrics;

use std::sync::Arc;

use axum::extract::State;
use seawall_api::{Health, HealthState, HealthStatus, ServiceCircuit};

use crate::http::error::ApiError;
use crate::http::registry::services::state_word;
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

const UP: HealthStatus = HealthStatus { state: HealthState::Up };

/// For people: whether it is up, and which circuits are not closed.
pub(crate) async fn health(State(hub): State<Arc<Server>>) -> ApiResult<Health> {
    let circuits_not_closed = hub
        .gateway
        .circuits_not_closed()
        .into_iter()
        .map(|(name, state)| (name, state_word(state)))
        // One that lets more and more through again counts as closed.
        .filter(|(_, word)| *word != "closed")
        .map(|(name, word)| ServiceCircuit { service: name.to_string(), circuit: word.into() })
        .collect();
    Ok(ApiReply::new(Health { state: HealthState::Up, circuits_not_closed }))
}

/// Whether the process is worth keeping: whether all its threads get on with their work. If none does, nobody answers.
pub(crate) async fn liveness(State(hub): State<Arc<Server>>) -> ApiResult<HealthStatus> {
    if hub.pulse().is_well() {
        return Ok(ApiReply::new(UP));
    }
    Err(ApiError::new("stuck", "a thread of the process is stuck; restart the process"))
}

/// Whether it can take work: whether the store answers, and has all that it should.
pub(crate) async fn readiness(State(hub): State<Arc<Server>>) -> ApiResult<HealthStatus> {
    if let Some(damaged) = hub.store().damaged() {
        return Err(damaged.into());
    }
    let not_ready = |error| ApiError::new("notReady", format!("the store does not respond: {error}"));
    let answer = match hub.store().contact() {
        Some(known) => known,
        None => hub.ops.check_store().await.map_err(|error| error.to_string()),
    };
    answer.map_err(not_ready)?;
    Ok(ApiReply::new(UP))
}
