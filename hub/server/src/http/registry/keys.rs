//! Keys to the API.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use seawall_api::{CreatedKey, Key, KeySpec, RotateInput};
use seawall_hub_core::domain;
use seawall_hub_core::domain::key::{Scope, Scopes};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;

use crate::http::access::key_hash;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::{Input, duration, slug};
use crate::http::once::{change_key, replayed_or, sealed_note, secret_of_note};
use crate::http::reply::{ApiReply, ApiResult};

/// A key before it was rotated is good for so long, unless somebody says otherwise.
const GRACE: Duration = Duration::from_secs(3_600);

/// A key as it is given out: 256 bits by chance.
#[must_use]
pub fn fresh_key() -> String {
    format!("swk_{}", crate::http::random_hex::<32>())
}

pub(crate) async fn list(cx: RequestContext) -> ApiResult<Vec<Key>> {
    Ok(ApiReply::new(cx.hub.registry.keys().iter().map(view).collect()))
}

fn view(key: &domain::key::Key) -> Key {
    let time = |at: Millis| at.to_string().into();
    Key {
        name: key.name.as_str().into(),
        scopes: key.scopes.named().map(|scope| scope.word().into()).collect(),
        services: key.services.as_ref().map(|all| all.iter().map(|name| name.as_str().into()).collect()),
        sources: key.sources.clone(),
        made_at: time(key.made),
        expires_at: key.expires.map(time),
        revoked_at: key.revoked.map(time),
        former_until: key.former.map(|(_, until)| time(until)),
    }
}

pub(crate) async fn make(cx: RequestContext, headers: HeaderMap, body: Bytes) -> ApiResult<CreatedKey> {
    let mut once = change_key(&headers, &cx.caller, "key", &body)?;
    let mut input = Input::<KeySpec>::create(&body)?;
    let is_admin =
        input.get::<Vec<String>>("scopes").is_some_and(|all| all.iter().any(|word| word == "admin"));
    if is_admin && (input.has("services") || input.has("sources")) {
        // It could make itself another one without limits.
        input.wrong(
            "scopes",
            "a key with `admin` can't be restricted; use `operate`, `read`, `call` or `ingest`",
        );
    }
    let KeySpec { name, scopes, services, sources, expires_in } = input.finish()?;
    let name = slug(&name);
    let secret = fresh_key();
    if let Some(once) = &mut once {
        once.note = sealed_note(&cx.hub, &secret, name.as_str());
    }
    let key = domain::key::Key {
        name,
        hash: key_hash(&secret),
        former: None,
        scopes: scopes.iter().filter_map(|scope| Scope::from_word(scope.as_str())).collect::<Scopes>(),
        services: services.map(|all| all.iter().map(slug).collect()),
        sources,
        made: Millis(0),
        expires: expires_in.map(|time| cx.hub.now() + duration(&time)),
        revoked: None,
    };
    let name = key.name.clone();
    let created = |key: &domain::key::Key, secret: &str| {
        ApiReply::new(created_key(key, secret)).with_status(StatusCode::CREATED)
    };
    match cx.hub.registry.make_key(&cx, key, once).await {
        Ok(key) => Ok(created(&key, &secret)),
        Err(error) => replayed_or(error, "key", |note| {
            let key =
                cx.hub.registry.keys().into_iter().find(|key| key.name == name && key.revoked.is_none())?;
            let secret = secret_of_note(&cx.hub, note, name.as_str())?;
            // One that was rotated since has another secret.
            (key.hash == key_hash(&secret)).then(|| created(&key, &secret))
        }),
    }
}

fn created_key(key: &domain::key::Key, secret: &str) -> CreatedKey {
    CreatedKey { about: view(key), key: secret.to_owned() }
}

/// The name of a key in a path.
fn named(name: &str) -> Result<Slug, ApiError> {
    Slug::new(name).map_err(|_| ApiError::missing("key"))
}

pub(crate) async fn revoke(cx: RequestContext, Path(name): Path<String>) -> ApiResult<Key> {
    let key = cx.hub.registry.revoke_key(&cx, &named(&name)?).await.map_err(refused("key"))?;
    Ok(ApiReply::new(view(&key)))
}

/// `POST …/keys/{name}:rotate` with `{grace}`.
pub(crate) async fn rotate(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<CreatedKey> {
    let RotateInput { grace } = Input::<RotateInput>::optional(&body)?.finish()?;
    let (grace, secret) = (grace.as_ref().map_or(GRACE, duration), fresh_key());
    let rotated = cx.hub.registry.rotate_key(&cx, &named(&target)?, key_hash(&secret), grace).await;
    Ok(ApiReply::new(created_key(&rotated.map_err(refused("key"))?, &secret)))
}
