//! Requests that create something happen once under an `Idempotency-Key`.
//!
//! Whoever sends the same request again, because the answer got lost, gets the answer again: what was created, as it is now. For a
//! key to the API that includes the secret, which is kept sealed for as long as the hub remembers the request.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use seawall_hub_core::domain::hash;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::encode::{bytes_of_hex, hex};
use seawall_hub_core::service::{CREATED, ChangeError, ChangeKey};

use super::access::Caller;
use super::bridge::events::idempotency_key;
use super::error::{ApiError, refused};
use super::reply::{ApiReply, ApiResult};
use crate::hub::Server;

/// The header of an answer that was given before.
pub(super) const REPLAYED: &str = "idempotency-replayed";

/// The idempotency key of a request to create something of this kind, if it has one.
pub(super) fn change_key(
    headers: &HeaderMap,
    caller: &Caller,
    kind: &str,
    body: &[u8],
) -> Result<Option<ChangeKey>, ApiError> {
    let Some(key) = idempotency_key(headers, caller)? else { return Ok(None) };
    // What has to be there for the request to be taken belongs to what was asked for.
    let conditions =
        ["if-match", "if-none-match"].map(|name| headers.get(name).map_or(&[][..], HeaderValue::as_bytes));
    let fingerprint = hash::parts([kind.as_bytes(), conditions[0], conditions[1], body]);
    Ok(Some(ChangeKey { key, fingerprint, note: None }))
}

/// The response to a change that failed: the first one, if the change was made before under the same key.
pub(super) fn replayed_or<T>(
    error: ChangeError,
    what: &str,
    again: impl FnOnce(&str) -> Option<ApiReply<T>>,
) -> ApiResult<T> {
    let ChangeError::Repeated(note) = error else { return Err(refused(what)(error)) };
    let gone = || {
        let text = format!(
            "this request was carried out before, and the {what} was deleted or replaced since; use a new idempotency key"
        );
        ApiError::new("conflict", text)
    };
    let reply = again(&note).ok_or_else(gone)?.replayed();
    Ok(if note == CREATED { reply.with_status(StatusCode::CREATED) } else { reply })
}

/// Seals the secret of a new key for whoever repeats the request that made it.
pub(super) fn sealed_note(hub: &Server, secret: &str, name: &str) -> Option<String> {
    let SealedSecret(bytes) = hub.keyring.seal(secret.as_bytes(), &owner(name))?;
    Some(hex(&bytes))
}

/// The secret that was sealed for the name; `None` if the key that sealed it is gone.
pub(super) fn secret_of_note(hub: &Server, note: &str, name: &str) -> Option<String> {
    String::from_utf8(hub.keyring.unseal(&SealedSecret(bytes_of_hex(note)?), &owner(name))?).ok()
}

fn owner(name: &str) -> String {
    format!("created key {name}")
}
