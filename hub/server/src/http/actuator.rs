//! How the hub is.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::port::store::Store;
use serde_json::{Value, json};

use super::reply::{problem, store_problem, success};
use super::services::state_word;
use crate::hub::Hub;

/// For people: whether it is up, and which circuits are not closed.
pub(super) async fn health(State(hub): State<Arc<Hub>>) -> Response {
    let open: Vec<Value> = hub
        .registry()
        .troubled()
        .into_iter()
        .map(|(name, state)| (name, state_word(state)))
        // One that lets more and more through again counts as closed.
        .filter(|(_, word)| *word != "closed")
        .map(|(name, word)| json!({"service": name, "circuit": word}))
        .collect();
    success(StatusCode::OK, &json!({"state": "up", "circuitsNotClosed": open}))
}

/// Whether the process is worth keeping: whether all its threads get on with their work. If none does, nobody answers.
pub(super) async fn liveness(State(hub): State<Arc<Hub>>) -> Response {
    if hub.pulse().is_well() {
        return success(StatusCode::OK, &json!({"state": "up"}));
    }
    let word = "a thread of the process has stood still for too long; it has to be started again";
    problem(StatusCode::SERVICE_UNAVAILABLE, "stuck", word, true)
}

/// Whether it can take work: whether the store answers, and has all that it should.
pub(super) async fn readiness(State(hub): State<Arc<Hub>>) -> Response {
    if let Some(damaged) = hub.store().damaged() {
        return store_problem(&damaged);
    }
    match hub.store().next_due().await {
        Ok(_) => success(StatusCode::OK, &json!({"state": "up"})),
        Err(error) => {
            let word = format!("the store does not answer: {error}");
            problem(StatusCode::SERVICE_UNAVAILABLE, "notReady", &word, true)
        }
    }
}
