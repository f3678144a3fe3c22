//! Requests that create something happen once under an `Idempotency-Key`.
//!
//! Whoever sends the same request again, because the answer got lost, gets the answer again: what was created, as it is now. For a
//! key to the API that includes the secret, which is kept sealed for as long as the hub remembers the request.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::hash;
use seawall_hub_core::domain::service::SealedSecret;
use seawall_hub_core::encode::{bytes_of_hex, hex};
use seawall_hub_core::service::{CREATED, ChangeError, ChangeKey};

use super::access::Caller;
use super::bridge::events::idempotency_key;
use super::reply::{problem, refused};
use crate::hub::Server;

/// The header of an answer that was given before.
pub(super) const REPLAYED: &str = "idempotency-replayed";

/// The idempotency key of a request to create something of this kind, if it has one.
pub(super) fn change_key(
    headers: &HeaderMap,
    caller: &Caller,
    kind: &str,
    body: &[u8],
) -> Result<Option<ChangeKey>, Box<Response>> {
    let Some(key) = idempotency_key(headers, caller)? else { return Ok(None) };
    // What has to be there for the request to be taken belongs to what was asked for.
    let conditions =
        ["if-match", "if-none-match"].map(|name| headers.get(name).map_or(&[][..], HeaderValue::as_bytes));
    let fingerprint = hash::parts([kind.as_bytes(), conditions[0], conditions[1], body]);
    Ok(Some(ChangeKey { key, fingerprint, note: None }))
}

/// The status that was answered when the change was made.
pub(super) fn first_status(note: &str) -> StatusCode {
    if note == CREATED { StatusCode::CREATED } else { StatusCode::OK }
}

/// Marks an answer as one that was given before.
pub(super) fn replayed(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// The answer if what was created under the key is not there any more.
pub(super) fn gone_since(what: &str) -> Response {
    let text = format!(
        "this request was carried out before, and the {what} was deleted or replaced since; use a new idempotency key"
    );
    problem(StatusCode::CONFLICT, "conflict", &text, false)
}

/// The answer to a change that was refused, if it was not carried out before.
pub(super) fn refused_or(
    error: ChangeError,
    what: &str,
    repeated: impl FnOnce(StatusCode, String) -> Option<Response>,
) -> Response {
    match error {
        ChangeError::Repeated(note) => {
            let response = repeated(first_status(&note), note);
            response.map_or_else(|| gone_since(what), replayed)
        }
        error => refused(error, what),
    }
}

/// Seals the secret of a new key for whoever repeats the request that made it.
pub(super) fn sealed_note(hub: &Server, secret: &str, name: &str) -> Option<String> {
    let SealedSecret(bytes) = hub.keyring().seal(secret.as_bytes(), &owner(name))?;
    Some(hex(&bytes))
}

/// The secret that was sealed for the name; `None` if the key that sealed it is gone.
pub(super) fn secret_of_note(hub: &Server, note: &str, name: &str) -> Option<String> {
    String::from_utf8(hub.keyring().unseal(&SealedSecret(bytes_of_hex(note)?), &owner(name))?).ok()
}

fn owner(name: &str) -> String {
    format!("created key {name}")
}
