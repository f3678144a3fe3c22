//! The key of all secrets.

use axum::http::StatusCode;
use axum::response::Response;
use seawall_api::KeyRotation;

use crate::http::context::RequestContext;
use crate::http::reply::{refused, success};
use crate::rotate::RotationReport;

/// Handles `POST …/ops/secrets:rotate`.
pub(in crate::http) async fn rotate(cx: RequestContext) -> Response {
    match cx.hub.rotate_secrets(&cx).await {
        Ok(RotationReport { key, resealed, unreadable }) => {
            success(StatusCode::OK, &KeyRotation { key, resealed: resealed as u64, unreadable })
        }
        Err(why) => refused(why, "key"),
    }
}
