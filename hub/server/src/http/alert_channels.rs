//! Channels of alerts.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::alert::{Channel, LOG};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::service::ChannelTestResult;
use serde_json::{Value, json};

use super::access::Caller;
use super::context::RequestContext;
use super::fields::Fields;
use super::merge::{merged, patched};
use super::reply::{expected, missing, parse, problem, refused, success, versioned, wrong_fields};
use super::{HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;
use crate::notify::{ChannelNotifier, ChannelSettings, opened};
use crate::rotate;

/// The log stands first, and has nothing to set.
pub(super) async fn list(cx: RequestContext) -> Response {
    let log = json!({"name": LOG, "type": LOG, "version": 0, "changedAt": null});
    let others = cx.hub.alerts.channels();
    let others = others.iter().filter(|_| cx.caller.sees_all()).map(|channel| shown(&cx.hub, channel));
    success(StatusCode::OK, &std::iter::once(log).chain(others).collect::<Vec<_>>())
}

pub(super) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    match find(&cx.hub, &cx.caller, &name) {
        Some(channel) => versioned(StatusCode::OK, channel.version, &shown(&cx.hub, &channel)),
        None => missing("channel"),
    }
}

pub(super) async fn replace(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    keep(&cx, &name, expected(&headers)?, parse(&body)?).await
}

pub(super) async fn change(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
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
        let Some(channel) = find(&cx.hub, &cx.caller, &name) else { return Ok(missing("channel")) };
        let Some(settings) = opened(cx.hub.keyring(), &channel) else { return Ok(unreadable()) };
        let seen = said.unwrap_or(channel.version);
        let mut next = patched(settings.shown(), change.clone(), &[]);
        taken.iter().for_each(|name| next[*name] = Value::Null);
        let answer = keep(&cx, &name, Some(seen), next).await?;
        // Whoever does not say which version they have seen means the newest, also if it came this moment.
        if said.is_some() || answer.status() != StatusCode::PRECONDITION_FAILED {
            return Ok(answer);
        }
    }
}

pub(super) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> HandlerResult {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("channel")) };
    Ok(match cx.hub.alerts.delete_channel(&cx, &name, expected(&headers)?).await {
        Ok(()) => success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": true})),
        Err(why) => refused(why, "channel"),
    })
}

/// Handles the action `:test`.
pub(super) async fn act(cx: RequestContext, Path(part): Path<String>) -> HandlerResult {
    let Some((name, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    if verb != "test" {
        return Ok(no_verb(verb, ":test"));
    }
    let Some(channel) = find(&cx.hub, &cx.caller, name) else { return Ok(missing("channel")) };
    let channels = ChannelNotifier::new(cx.hub.transport().clone(), cx.hub.keyring().clone());
    Ok(match cx.hub.alerts.test_channel(&channel.name, &channels).await {
        Ok(ChannelTestResult { message, came, took }) => {
            let (sent, said) = (came.is_ok(), came.unwrap_or_else(|error| error));
            let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let data = json!({"message": message, "sent": sent, "said": said, "tookMs": took});
            success(StatusCode::OK, &data)
        }
        Err(why) => refused(why, "channel"),
    })
}

fn find(hub: &Server, caller: &Caller, name: &str) -> Option<Channel> {
    Slug::new(name).ok().filter(|_| caller.sees_all()).and_then(|name| hub.alerts.channel(&name))
}

async fn keep(cx: &RequestContext, name: &str, expected: Option<u64>, body: Value) -> HandlerResult {
    let mut fields = Fields::new(body);
    let name = fields.name(Some(name));
    // What is shown can be written back: what nobody can write is passed over.
    for shown_only in ["version", "changedAt"] {
        fields.any(shown_only);
    }
    let _sealing = cx.hub.keyring().sealing().await;
    let before = name.as_ref().and_then(|name| cx.hub.alerts.channel(name));
    let before = before.and_then(|channel| opened(cx.hub.keyring(), &channel));
    let (settings, known) = ChannelSettings::read(&mut fields, before.as_ref());
    let problems = fields.end(known);
    let Some((name, settings)) = name.zip(settings).filter(|_| problems.is_empty()) else {
        return Ok(wrong_fields(&problems));
    };
    let Some(settings) = cx.hub.keyring().seal(&settings.to_bytes(), &rotate::channel(&name)) else {
        let word = "the settings could not be encrypted and were not stored";
        return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
    };
    let channel = Channel { name, version: 0, settings, changed: Millis(0) };
    Ok(match cx.hub.alerts.put_channel(cx, channel, expected).await {
        Ok(kept) => {
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(&cx.hub, &kept))
        }
        Err(why) => refused(why, "channel"),
    })
}

fn unreadable() -> Response {
    let word = "its settings can't be decrypted; set all of them with PUT";
    problem(StatusCode::CONFLICT, "conflict", word, false)
}

fn shown(hub: &Server, channel: &Channel) -> Value {
    let settings = opened(hub.keyring(), channel).map_or_else(|| json!({"type": null}), |one| one.shown());
    let own = json!({
        "name": channel.name.as_str(), "version": channel.version, "changedAt": channel.changed.to_string(),
    });
    merged(settings, own)
}
