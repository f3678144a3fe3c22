//! How the hub is.

pub(in crate::http) mod metrics;

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use seawall_api::{Health, HealthState, HealthStatus, ServiceCircuit};

use crate::http::registry::services::state_word;
use crate::http::reply::{problem, store_problem, success};
use crate::hub::Server;

/// For people: whether it is up, and which circuits are not closed.
pub(in crate::http) async fn health(State(hub): State<Arc<Server>>) -> Response {
    let circuits_not_closed = hub
        .gateway
        .circuits_not_closed()
        .into_iter()
        .map(|(name, state)| (name, state_word(state)))
        // One that lets more and more through again counts as closed.
        .filter(|(_, word)| *word != "closed")
        .map(|(name, word)| ServiceCircuit { service: name.to_string(), circuit: word.into() })
        .collect();
    success(StatusCode::OK, &Health { state: HealthState::Up, circuits_not_closed })
}

/// Whether the process is worth keeping: whether all its threads get on with their work. If none does, nobody answers.
pub(in crate::http) async fn liveness(State(hub): State<Arc<Server>>) -> Response {
    if hub.pulse().is_well() {
        return success(StatusCode::OK, &HealthStatus { state: HealthState::Up });
    }
    let word = "a thread of the process is stuck; restart the process";
    problem(StatusCode::SERVICE_UNAVAILABLE, "stuck", word, true)
}

/// Whether it can take work: whether the store answers, and has all that it should.
pub(in crate::http) async fn readiness(State(hub): State<Arc<Server>>) -> Response {
    if let Some(damaged) = hub.store().damaged() {
        return store_problem(&damaged);
    }
    let answer = match hub.store().contact() {
        Some(known) => known,
        None => hub.ops.check_store().await.map_err(|error| error.to_string()),
    };
    match answer {
        Ok(()) => success(StatusCode::OK, &HealthStatus { state: HealthState::Up }),
        Err(error) => {
            let word = format!("the store does not respond: {error}");
            problem(StatusCode::SERVICE_UNAVAILABLE, "notReady", &word, true)
        }
    }
}
