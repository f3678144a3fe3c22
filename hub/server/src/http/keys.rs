//! Keys to the API.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use seawall_hub_core::domain::key::{Key, Scope, Scopes};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use serde_json::{Value, json};

use super::access::key_hash;
use super::fields::Fields;
use super::reply::{missing, parse, refused, success, wrong_fields};
use super::services::merged;
use super::{Caught, split_verb};
use crate::hub::Hub;

/// A key before it was rotated is good for so long, unless somebody says otherwise.
const GRACE: Duration = Duration::from_secs(3_600);

/// A key as it is given out: 256 bits by chance.
#[must_use]
pub fn fresh_key() -> String {
    format!("swk_{}", super::random_hex::<32>())
}

pub(super) async fn list(State(hub): State<Arc<Hub>>) -> Response {
    success(StatusCode::OK, &hub.keys().iter().map(shown).collect())
}

fn shown(key: &Key) -> Value {
    let time = |at: Option<Millis>| at.map(|at| at.to_string());
    json!({
        "name": key.name.as_str(), "scopes": key.scopes.named().map(Scope::word).collect::<Vec<_>>(),
        "services": key.services.as_ref().map(|all| all.iter().map(Slug::as_str).collect::<Vec<_>>()),
        "sources": key.sources, "madeAt": key.made.to_string(), "expiresAt": time(key.expires),
        "revokedAt": time(key.revoked), "formerUntil": time(key.former.map(|(_, until)| until)),
    })
}

/// `{name, scopes, services, sources, expiresIn}`
pub(super) async fn make(State(hub): State<Arc<Hub>>, body: Bytes) -> Caught {
    let mut fields = Fields::new(parse(&body)?);
    let name = fields.needed("name");
    let name = fields.parsed("name", &name, Slug::new);
    let mut scopes = Vec::new();
    for word in fields.texts("scopes") {
        match Scope::from_word(&word) {
            Some(scope) => scopes.push(scope),
            None => {
                let known = Scope::ALL.map(Scope::word).join(", ");
                fields.wrong("scopes", format!("`{word}` is none of {known}"));
            }
        }
    }
    if scopes.is_empty() && !fields.has_problem_with("scopes") {
        fields.wrong("scopes", "say what it may do: ingest, call, read, operate, admin");
    }
    let services = list_of(&mut fields, "services").map(|names| {
        names.iter().filter_map(|name| fields.parsed("services", name, Slug::new)).collect::<Vec<_>>()
    });
    let sources = list_of(&mut fields, "sources");
    if scopes.contains(&Scope::Admin) && (services.is_some() || sources.is_some()) {
        // It could make itself another one without limits.
        fields.wrong(
            "scopes",
            "a key with `admin` can't be limited; give it `operate`, `read`, `call` or `ingest`",
        );
    }
    let expires = fields.duration("expiresIn").map(|time| hub.now() + time);
    let problems = fields.end("name, scopes, services, sources, expiresIn");
    let Some(name) = name.filter(|_| problems.is_empty()) else { return Ok(wrong_fields(&problems)) };
    let secret = fresh_key();
    let key = Key {
        name,
        hash: key_hash(&secret),
        former: None,
        scopes: scopes.into_iter().collect::<Scopes>(),
        services,
        sources,
        made: Millis(0),
        expires,
        revoked: None,
    };
    Ok(match hub.make_key(key).await {
        Ok(key) => success(StatusCode::CREATED, &merged(shown(&key), json!({"key": secret}))),
        Err(why) => refused(why, "key"),
    })
}

/// A list that limits something: if it is named it has something in it, because an empty one would limit to nothing and look
/// like no limit.
fn list_of(fields: &mut Fields, field: &str) -> Option<Vec<String>> {
    if !fields.has(field) {
        return None;
    }
    let named = fields.texts(field);
    if named.is_empty() && !fields.has_problem_with(field) {
        fields.wrong(field, "name at least one, or leave it out for all");
    }
    Some(named)
}

pub(super) async fn revoke(State(hub): State<Arc<Hub>>, Path(name): Path<String>) -> Response {
    let Ok(name) = Slug::new(&name) else { return missing("key") };
    match hub.revoke_key(&name).await {
        Ok(key) => success(StatusCode::OK, &shown(&key)),
        Err(why) => refused(why, "key"),
    }
}

/// `POST …/keys/{name}:rotate` with `{grace}`.
pub(super) async fn act(State(hub): State<Arc<Hub>>, Path(name_verb): Path<String>, body: Bytes) -> Caught {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(super::nothing_here()) };
    if verb != "rotate" {
        return Ok(super::no_verb(verb, "rotate"));
    }
    let mut fields = Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? });
    let grace = fields.duration("grace").unwrap_or(GRACE);
    let problems = fields.end("grace");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let Ok(name) = Slug::new(name) else { return Ok(missing("key")) };
    let secret = fresh_key();
    Ok(match hub.rotate_key(&name, key_hash(&secret), grace).await {
        Ok(key) => success(StatusCode::OK, &merged(shown(&key), json!({"key": secret}))),
        Err(why) => refused(why, "key"),
    })
}
