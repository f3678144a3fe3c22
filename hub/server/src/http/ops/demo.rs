//! The sample services of a demo. Only the hub of a demo has these routes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use schemars::JsonSchema;
use seawall_hub_core::domain::slug::Slug;
use serde::{Deserialize, Serialize};

use crate::demo::{SampleState, Upstream};
use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::ApiError;
use crate::http::input::Input;
use crate::http::nothing_here;
use crate::http::registry::services::circuit_word;
use crate::http::reply::{ApiReply, ApiResult};
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
pub(crate) struct SampleStatus {
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
pub(crate) struct StoryLine {
    at: String,
    line: String,
}

pub(crate) async fn list(cx: RequestContext) -> ApiResult<Vec<SampleStatus>> {
    let demo = cx.hub.demo().ok_or_else(nothing_here)?;
    let mut all = Vec::new();
    for upstream in &demo.upstreams {
        if let Some(name) = seen(upstream, &cx.caller) {
            all.push(shown(&cx.hub, upstream, &name).await);
        }
    }
    Ok(ApiReply::new(all))
}

/// What has been told so far, the oldest first.
pub(crate) async fn story(State(hub): State<Arc<Server>>) -> ApiResult<Vec<StoryLine>> {
    let demo = hub.demo().ok_or_else(nothing_here)?;
    let told = demo.told().into_iter().map(|(at, line)| StoryLine { at: at.to_string(), line });
    Ok(ApiReply::new(told.collect()))
}

/// Handles the action `POST …/{name}:set`.
pub(crate) async fn set(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<SampleStatus> {
    let demo = cx.hub.demo().ok_or_else(nothing_here)?;
    let mut input = Input::<MoodInput>::create(&body)?;
    let word = input.get::<String>("mood").unwrap_or_default();
    let mood = SampleState::from_word(&word);
    if mood.is_none() && !word.is_empty() {
        let words = SampleState::ALL.map(SampleState::word).join(", ");
        input.wrong("mood", format!("must be one of {words}, not `{word}`"));
    }
    input.finish()?;
    let found = demo.upstream(&target).and_then(|upstream| Some((upstream, seen(upstream, &cx.caller)?)));
    let (upstream, name) = found.ok_or_else(|| ApiError::missing("upstream"))?;
    if let Some(mood) = mood {
        upstream.feel(mood);
    }
    Ok(ApiReply::new(shown(&cx.hub, upstream, &name).await))
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
