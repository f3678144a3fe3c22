//! The sample services of a demo. Only the hub of a demo has these routes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use seawall_hub_core::domain::slug::Slug;
use serde::{Deserialize, Serialize};

use crate::demo::{SampleState, Upstream};
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::registry::services::circuit_word;
use crate::http::reply::{missing, success};
use crate::http::{HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

/// The new state of a sample service.
#[derive(Deserialize, JsonSchema)]
struct MoodInput {
    #[expect(dead_code, reason = "its word is checked before, against the states that there are")]
    #[schemars(length(min = 1))]
    mood: String,
}

/// A sample service as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleStatus {
    name: &'static str,
    plays: &'static str,
    address: String,
    mood: &'static str,
    moods: [&'static str; SampleState::ALL.len()],
    circuit: Option<&'static str>,
    waiting: u64,
    dead_letters: u64,
    answered: AnswerCounts,
}

/// The number of requests that a sample service has answered.
#[derive(Serialize)]
struct AnswerCounts {
    good: u64,
    bad: u64,
}

/// A line of the scripted outage.
#[derive(Serialize)]
struct StoryLine {
    at: String,
    line: String,
}

pub(in crate::http) async fn list(cx: RequestContext) -> HandlerResult {
    let Some(demo) = cx.hub.demo() else { return Ok(nothing_here()) };
    let mut all = Vec::new();
    for upstream in &demo.upstreams {
        if let Some(name) = seen(upstream, &cx.caller) {
            all.push(shown(&cx.hub, upstream, &name).await);
        }
    }
    Ok(success(StatusCode::OK, &all))
}

/// What has been told so far, the oldest first.
pub(in crate::http) async fn story(State(hub): State<Arc<Server>>) -> HandlerResult {
    let Some(demo) = hub.demo() else { return Ok(nothing_here()) };
    let told = demo.told().into_iter().map(|(at, line)| StoryLine { at: at.to_string(), line });
    Ok(success(StatusCode::OK, &told.collect::<Vec<_>>()))
}

/// Handles the action `POST …/{name}:set`.
pub(in crate::http) async fn act(cx: RequestContext, Path(name): Path<String>, body: Bytes) -> HandlerResult {
    let Some(demo) = cx.hub.demo() else { return Ok(nothing_here()) };
    let name = match split_verb(&name) {
        Some((name, "set")) => name,
        Some((_, verb)) => return Ok(no_verb(verb, "`:set`")),
        None => return Ok(nothing_here()),
    };
    let mut input = Input::<MoodInput>::create(&body)?;
    let word = input.get::<String>("mood").unwrap_or_default();
    let mood = SampleState::from_word(&word);
    if mood.is_none() && !word.is_empty() {
        let words = SampleState::ALL.map(SampleState::word).join(", ");
        input.wrong("mood", format!("must be one of {words}, not `{word}`"));
    }
    input.finish()?;
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

async fn shown(hub: &Server, upstream: &Upstream, name: &Slug) -> SampleStatus {
    let standing = hub.ops.backlog(name).await;
    let (good, bad) = upstream.answered();
    SampleStatus {
        name: upstream.part.name,
        plays: upstream.part.plays,
        address: format!("http://{}", upstream.address),
        mood: upstream.mood().word(),
        moods: SampleState::ALL.map(SampleState::word),
        circuit: circuit_word(hub, name),
        waiting: standing.waiting,
        dead_letters: standing.kept.map_or(0, |kept| kept.dead_letters),
        answered: AnswerCounts { good, bad },
    }
}
