//! Channels of alerts.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{
    AlertChannel, AlertChannelSpec, AlertChannelTested, ChannelSettings, Deleted, Exposed, WriteOnly,
};
use seawall_hub_core::domain::alert::{Channel, LOG};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::service::ChannelTestResult;

use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::input::{Input, retried, slug};
use crate::http::reply::{expected, missing, parse, problem, refused, success, versioned};
use crate::http::{HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;
use crate::notify::settings::{is_shortened, shown, shown_url, usual_port};
use crate::notify::{ChannelNotifier, opened};
use crate::rotate;

type ChannelInput = Input<AlertChannelSpec, AlertChannel>;

/// The log stands first, and has nothing to set.
pub(in crate::http) async fn list(cx: RequestContext) -> Response {
    let log =
        AlertChannel { name: LOG.into(), version: 0, changed_at: None, settings: Some(ChannelSettings::Log) };
    let others = cx.hub.alerts.channels();
    let others = others.iter().filter(|_| cx.caller.sees_all()).map(|channel| view(&cx.hub, channel));
    success(StatusCode::OK, &std::iter::once(log).chain(others).collect::<Vec<_>>())
}

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    match find(&cx.hub, &cx.caller, &name) {
        Some(channel) => versioned(StatusCode::OK, channel.version, &view(&cx.hub, &channel)),
        None => missing("channel"),
    }
}

pub(in crate::http) async fn replace(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    keep(&cx, expected(&headers)?, Input::put(&body, &name)?).await
}

pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let (stated, change) = (expected(&headers)?, parse(&body)?);
    let (cx, name, change) = (&cx, &*name, &change);
    retried(stated, || async move {
        let Some(channel) = find(&cx.hub, &cx.caller, name) else { return Ok(missing("channel")) };
        let Some(settings) = opened(cx.hub.keyring(), &channel) else { return Ok(unreadable()) };
        let current = AlertChannelSpec { name: name.into(), settings: shown(settings) };
        let input = Input::patch(&current, change.clone(), name);
        keep(cx, stated.or(Some(channel.version)), input).await
    })
    .await
}

pub(in crate::http) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> HandlerResult {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("channel")) };
    Ok(match cx.hub.alerts.delete_channel(&cx, &name, expected(&headers)?).await {
        Ok(()) => success(StatusCode::OK, &Deleted { name: name.as_str().into(), deleted: true }),
        Err(why) => refused(why, "channel"),
    })
}

/// Handles the action `:test`.
pub(in crate::http) async fn act(cx: RequestContext, Path(part): Path<String>) -> HandlerResult {
    let Some((name, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    if verb != "test" {
        return Ok(no_verb(verb, ":test"));
    }
    let Some(channel) = find(&cx.hub, &cx.caller, name) else { return Ok(missing("channel")) };
    let channels = ChannelNotifier::new(cx.hub.transport().clone(), cx.hub.keyring().clone());
    Ok(match cx.hub.alerts.test_channel(&channel.name, &channels).await {
        Ok(ChannelTestResult { message, came, took }) => {
            let (sent, said) = (came.is_ok(), came.unwrap_or_else(|error| error));
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            success(StatusCode::OK, &AlertChannelTested { message, sent, said, took_ms })
        }
        Err(why) => refused(why, "channel"),
    })
}

fn find(hub: &Server, caller: &Caller, name: &str) -> Option<Channel> {
    Slug::new(name).ok().filter(|_| caller.sees_all()).and_then(|name| hub.alerts.channel(&name))
}

async fn keep(cx: &RequestContext, expected: Option<u64>, mut input: ChannelInput) -> HandlerResult {
    let _sealing = cx.hub.keyring().sealing().await;
    let before = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
    let before = before.and_then(|name| cx.hub.alerts.channel(&name));
    let before = before.and_then(|channel| opened(cx.hub.keyring(), &channel));
    let secret = checked(before.as_ref(), &mut input);
    let AlertChannelSpec { name, settings } = input.finish()?;
    let name = slug(&name);
    let bytes = serde_json::to_vec(&exposed(settings, before, secret)).unwrap_or_default();
    let Some(settings) = cx.hub.keyring().seal(&bytes, &rotate::channel(&name)) else {
        let word = "the settings could not be encrypted and were not stored";
        return Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "seal", word, true));
    };
    let channel = Channel { name, version: 0, settings, changed: Millis(0) };
    Ok(match cx.hub.alerts.put_channel(cx, channel, expected).await {
        Ok(kept) => {
            let status = if kept.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &view(&cx.hub, &kept))
        }
        Err(why) => refused(why, "channel"),
    })
}

/// Checks what no field says alone, and returns the secret that the channel has from now on.
fn checked(before: Option<&ChannelSettings<Exposed>>, input: &mut ChannelInput) -> Option<Exposed> {
    match &*input.get::<String>("type")? {
        "webhook" => {
            let (known_url, known) = match before {
                Some(ChannelSettings::Webhook { url, secret }) => (Some(shown_url(url)), secret.as_ref()),
                _ => (None, None),
            };
            let url = input.get::<String>("url");
            if url.is_some_and(|url| is_shortened(&url) && known_url.is_none_or(|known| known != url)) {
                input.wrong("url", "must not be the shortened URL; set the whole URL");
            }
            secret(input, "secret", known)
        }
        "email" => {
            let known = match before {
                Some(ChannelSettings::Email { password, .. }) => password.as_ref(),
                _ => None,
            };
            let password = secret(input, "password", known);
            let has_login = input.get::<String>("username").is_some();
            if has_login && password.is_none() && !input.has_problem_with("password") {
                input.wrong("password", "required with a username");
            }
            if has_login && password.is_some() && input.get::<String>("tls").is_some_and(|tls| tls == "none")
            {
                let reason =
                    "must be `starttls` or `implicit` with a password, which is never sent in plain text";
                input.wrong("tls", reason);
            }
            password
        }
        _ => {
            input.wrong("type", "`type` is one of webhook, email; `log` is always there");
            None
        }
    }
}

/// What is omitted stays, what is null goes, and what is shown in its place means the one that is there.
fn secret(input: &mut ChannelInput, field: &str, before: Option<&Exposed>) -> Option<Exposed> {
    if !input.has(field) {
        return before.cloned();
    }
    match input.get::<WriteOnly>(field)? {
        WriteOnly::Set(text) => Some(Exposed(text)),
        WriteOnly::Keep => {
            if before.is_none() {
                input.wrong(field, "must not be the placeholder `…`; no secret is stored");
            }
            before.cloned()
        }
    }
}

/// The settings to seal: those that were written, with the secret, and with the whole URL in place of the one that is shown.
fn exposed(
    settings: ChannelSettings<WriteOnly>,
    before: Option<ChannelSettings<Exposed>>,
    secret: Option<Exposed>,
) -> ChannelSettings<Exposed> {
    match settings {
        ChannelSettings::Log => ChannelSettings::Log,
        ChannelSettings::Webhook { url, secret: _ } => {
            let url = match before {
                Some(ChannelSettings::Webhook { url: known, .. }) if shown_url(&known) == url => known,
                _ => url,
            };
            ChannelSettings::Webhook { url, secret }
        }
        ChannelSettings::Email { host, port, tls, username, password: _, from, to, ca } => {
            let tls = tls.unwrap_or_default();
            ChannelSettings::Email {
                host,
                port: port.or_else(|| usual_port(&tls)),
                tls: Some(tls),
                // A password without a user is of no use.
                password: secret.filter(|_| username.is_some()),
                username,
                from,
                to,
                ca,
            }
        }
    }
}

fn unreadable() -> Response {
    let word = "its settings can't be decrypted; set all of them with PUT";
    problem(StatusCode::CONFLICT, "conflict", word, false)
}

fn view(hub: &Server, channel: &Channel) -> AlertChannel {
    AlertChannel {
        name: channel.name.as_str().into(),
        version: channel.version,
        changed_at: Some(channel.changed.to_string().into()),
        settings: opened(hub.keyring(), channel).map(shown),
    }
}

#[cfg(test)]
mod tests;
