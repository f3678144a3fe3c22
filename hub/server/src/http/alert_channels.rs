//! Channels of alerts.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::alert::{Channel, LOG};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::service::Tested;
use serde_json::{Value, json};

use super::access::Caller;
use super::fields::Fields;
use super::reply::{expected, missing, parse, problem, refused, success, versioned, wrong_fields};
use super::services::{merged, patched};
use super::{Caught, no_verb, nothing_here, split_verb};
use crate::hub::Hub;
use crate::notify::{Channels, Settings, opened};
use crate::rotate;

/// The log stands first, and has nothing to set.
pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let log = json!({"name": LOG, "type": LOG, "version": 0, "changedAt": null});
    let others = hub.channels();
    let others = others.iter().filter(|_| caller.sees_all()).map(|channel| shown(&hub, channel));
    success(StatusCode::OK, &std::iter::once(log).chain(others).collect())
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match find(&hub, &caller, &name) {
        Some(channel) => versioned(StatusCode::OK, channel.version, &shown(&hub, &channel)),
        None => missing("channel"),
    }
}

pub(super) async fn replace(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &name, expected(&headers)?, parse(&body)?).await
}

pub(super) async fn change(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let (said, mut change) = (expected(&headers)?, parse(&body)?);
    // Whoever takes a secret away says null, which must not be lost on the way.
    let taken: Vec<&str> = ["secret", "password"]
        .into_iter()
        .filter(|name| change.get(*name).is_some_and(Value::is_null))
        .collect();
    if let Some(fields) = change.as_object_mut() {
        taken.iter().for_each(|name| drop(fields.remove(*name)));
    }
    loop {
        let Some(channel) = find(&hub, &caller, &name) else { return Ok(missing("channel")) };
        let Some(settings) = opened(hub.keyring(), &channel) else { return Ok(unreadable()) };
        let seen = said.unwrap_or(channel.version);
        let mut next = patched(settings.shown(), change.clone(), &[]);
        taken.iter().for_each(|name| next[*name] = Value::Null);
        let answer = keep(&hub, &name, Some(seen), next).await?;
        // Whoever does not say which version they have seen means the newest, also if it came this moment.
        if said.is_some() || answer.status() != StatusCode::PRECONDITION_FAILED {
            return Ok(answer);
        }
    }
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Caught {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("channel")) };
    Ok(match hub.delete_channel(&name, expected(&headers)?).await {
        Ok(()) => success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": true})),
        Err(why) => refused(why, "channel"),
    })
}

/// `:test`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(part): Path<String>,
) -> Caught {
    let Some((name, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    if verb != "test" {
        return Ok(no_verb(verb, ":test"));
    }
    let Some(channel) = find(&hub, &caller, name) else { return Ok(missing("channel")) };
    let channels = Channels::new(hub.transport().clone(), hub.keyring().clone());
    Ok(match hub.test_channel(&channel.name, &channels).await {
        Ok(Tested { message, came, took }) => {
            let (sent, said) = (came.is_ok(), came.unwrap_or_else(|error| error));
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let data = json!({"message": message, "sent": sent, "said": said, "tookMs": took});
            success(StatusCode::OK, &data)
        }
        Err(why) => refused(why, "channel"),
    })
}

fn find(hub: &Hub, caller: &Caller, name: &str) -> Option<Channel> {
    Slug::new(name).ok().filter(|_| caller.sees_all()).and_then(|name| hub.channel(&name))
}

async fn keep(hub: &Hub, name: &str, expected: Option<u64>, body: Value) -> Caught {
    let mut fields = Fields::new(body);
    let name = fields.name(Some(name));
    // What is shown can be written back: what nobody can write is passed over.
    for shown_only in ["version", "changedAt"] {
        fields.any(shown_only);
    }
    let _sealing = hub.keyring().sealing().await;
    let before = name.as_ref().and_then(|name| hub.channel(name));
    let before = before.and_then(|channel| opened(hub.keyring(), &channel));
    let (settings, known) = Settings::read(&mut fields, before.as_ref());
    let problems = fields.end(known);
    let Some((name, settings)) = name.zip(settings).filter(|_| problems.is_empty()) else {
        return Ok(wrong_fields(&problems));
    };
    let Some(settings) = hub.keyring().seal(&settings.to_bytes(), &rotate::channel(&name)) else {
        let word = "the settings could not be sealed, so they were not kept";
        return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
    };
    let channel = Channel { name, version: 0, settings, changed: Millis(0) };
    Ok(match hub.put_channel(channel, expected).await {
        Ok(kept) => {
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(hub, &kept))
        }
        Err(why) => refused(why, "channel"),
    })
}

fn unreadable() -> Response {
    let word = "its settings can't be opened; say all of them with PUT";
    problem(StatusCode::CONFLICT, "conflict", word, false)
}

fn shown(hub: &Hub, channel: &Channel) -> Value {
    let settings = opened(hub.keyring(), channel).map_or_else(|| json!({"type": null}), |one| one.shown());
    let own = json!({
        "name": channel.name.as_str(), "version": channel.version, "changedAt": channel.changed.to_string(),
    });
    merged(settings, own)
}
