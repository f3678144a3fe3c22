//! The sample services of a demo. Only the hub of a demo has these routes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use seawall_hub_core::domain::slug::Slug;
use serde_json::{Value, json};

use super::access::Caller;
use super::context::RequestContext;
use super::fields::Fields;
use super::reply::{missing, parse, success, wrong_fields};
use super::services::circuit_word;
use super::{HandlerResult, no_verb, nothing_here, split_verb};
use crate::demo::{SampleState, Upstream};
use crate::hub::Server;

pub(super) async fn list(cx: RequestContext) -> HandlerResult {
    let Some(demo) = cx.hub.demo() else { return Ok(nothing_here()) };
    let mut all = Vec::new();
    for upstream in &demo.upstreams {
        if let Some(name) = seen(upstream, &cx.caller) {
            all.push(shown(&cx.hub, upstream, &name).await);
        }
    }
    Ok(success(StatusCode::OK, &Value::Array(all)))
}

/// What has been told so far, the oldest first.
pub(super) async fn story(State(hub): State<Arc<Server>>) -> HandlerResult {
    let Some(demo) = hub.demo() else { return Ok(nothing_here()) };
    let told: Vec<Value> =
        demo.told().into_iter().map(|(at, line)| json!({"at": at.to_string(), "line": line})).collect();
    Ok(success(StatusCode::OK, &Value::Array(told)))
}

/// Handles the action `POST …/{name}:set`.
pub(super) async fn act(cx: RequestContext, Path(name): Path<String>, body: Bytes) -> HandlerResult {
    let Some(demo) = cx.hub.demo() else { return Ok(nothing_here()) };
    let name = match split_verb(&name) {
        Some((name, "set")) => name,
        Some((_, verb)) => return Ok(no_verb(verb, "`:set`")),
        None => return Ok(nothing_here()),
    };
    let mut fields = Fields::new(parse(&body)?);
    let word = fields.needed("mood");
    let mood = SampleState::from_word(&word);
    if mood.is_none() && !word.is_empty() {
        let words = SampleState::ALL.map(SampleState::word).join(", ");
        fields.wrong("mood", format!("must be one of {words}, not `{word}`"));
    }
    let problems = fields.end("mood");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let found = demo.upstream(name).and_then(|upstream| Some((upstream, seen(upstream, &cx.caller)?)));
    let Some((upstream, name)) = found else { return Ok(missing("upstream")) };
    if let Some(mood) = mood {
        upstream.feel(mood);
    }
    Ok(success(StatusCode::OK, &shown(&cx.hub, upstream, &name).await))
}

/// Its name, if the caller may see it.
fn seen(upstream: &Upstream, caller: &Caller) -> Option<Slug> {
    Slug::new(upstream.part.name).ok().filter(|name| caller.sees(name))
}

async fn shown(hub: &Server, upstream: &Upstream, name: &Slug) -> Value {
    let standing = hub.ops.backlog(name).await;
    let letters = standing.kept.map_or(0, |kept| kept.dead_letters);
    let (good, bad) = upstream.answered();
    json!({
        "name": upstream.part.name, "plays": upstream.part.plays, "address": format!("http://{}", upstream.address),
        "mood": upstream.mood().word(), "moods": SampleState::ALL.map(SampleState::word), "circuit": circuit_word(hub, name),
        "waiting": standing.waiting, "deadLetters": letters, "answered": {"good": good, "bad": bad},
    })
}
