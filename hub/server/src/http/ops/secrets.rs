//! The key that encrypts all secrets.

use seawall_api::KeyRotation;

use crate::http::context::RequestContext;
use crate::http::error::refused;
use crate::http::reply::{ApiReply, ApiResult};
use crate::rotate::RotationReport;

/// Handles `POST …/ops/secrets:rotate`.
pub(crate) async fn rotate(cx: RequestContext) -> ApiResult<KeyRotation> {
    let rotated = cx.hub.rotate_secrets(&cx).await.map_err(refused("key"))?;
    let RotationReport { key, resealed, unreadable } = rotated;
    Ok(ApiReply::new(KeyRotation { key, resealed: resealed as u64, unreadable }))
}
