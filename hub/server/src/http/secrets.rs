//! The key of all secrets.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::reply::{refused, success};
use crate::hub::Hub;
use crate::rotate::Rotated;

/// `POST …/ops/secrets:rotate`
pub(super) async fn rotate(State(hub): State<Arc<Hub>>) -> Response {
    match hub.rotate_secrets().await {
        Ok(Rotated { key, resealed, unreadable }) => {
            success(StatusCode::OK, &json!({"key": key, "resealed": resealed, "unreadable": unreadable}))
        }
        Err(why) => refused(why, "key"),
    }
}
