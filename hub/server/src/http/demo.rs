//! The sample services of a demo. Only the hub of a demo has these routes.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use seawall_hub_core::domain::slug::Slug;
use serde_json::{Value, json};

use super::access::Caller;
use super::fields::Fields;
use super::reply::{missing, parse, success, wrong_fields};
use super::services::circuit_word;
use super::{Caught, no_verb, nothing_here, split_verb};
use crate::demo::{Mood, Upstream};
use crate::hub::Hub;

pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Caught {
    let Some(demo) = hub.demo() else { return Ok(nothing_here()) };
    let mut all = Vec::new();
    for upstream in &demo.upstreams {
        if let Some(name) = seen(upstream, &caller) {
            all.push(shown(&hub, upstream, &name).await);
        }
    }
    Ok(success(StatusCode::OK, &Value::Array(all)))
}

/// What has been told so far, the oldest first.
pub(super) async fn story(State(hub): State<Arc<Hub>>) -> Caught {
    let Some(demo) = hub.demo() else { return Ok(nothing_here()) };
    let told: Vec<Value> =
        demo.told().into_iter().map(|(at, line)| json!({"at": at.to_string(), "line": line})).collect();
    Ok(success(StatusCode::OK, &Value::Array(told)))
}

/// `POST …/{name}:set`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    body: Bytes,
) -> Caught {
    let Some(demo) = hub.demo() else { return Ok(nothing_here()) };
    let name = match split_verb(&name) {
        Some((name, "set")) => name,
        Some((_, verb)) => return Ok(no_verb(verb, "`:set`")),
        None => return Ok(nothing_here()),
    };
    let mut fields = Fields::new(parse(&body)?);
    let word = fields.needed("mood");
    let mood = Mood::of(&word);
    if mood.is_none() && !word.is_empty() {
        let words = Mood::ALL.map(Mood::word).join(", ");
        fields.wrong("mood", format!("`{word}` is none; there are {words}"));
    }
    let problems = fields.end("mood");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let found = demo.upstream(name).and_then(|upstream| Some((upstream, seen(upstream, &caller)?)));
    let Some((upstream, name)) = found else { return Ok(missing("upstream")) };
    if let Some(mood) = mood {
        upstream.feel(mood);
    }
    Ok(success(StatusCode::OK, &shown(&hub, upstream, &name).await))
}

/// Its name, if the caller may see it.
fn seen(upstream: &Upstream, caller: &Caller) -> Option<Slug> {
    Slug::new(upstream.part.name).ok().filter(|name| caller.sees(name))
}

async fn shown(hub: &Hub, upstream: &Upstream, name: &Slug) -> Value {
    let standing = hub.standing(name).await;
    let letters = standing.kept.map_or(0, |kept| kept.dead_letters);
    let (good, bad) = upstream.answered();
    json!({
        "name": upstream.part.name, "plays": upstream.part.plays, "address": format!("http://{}", upstream.address),
        "mood": upstream.mood().word(), "moods": Mood::ALL.map(Mood::word), "circuit": circuit_word(hub, name),
        "waiting": standing.waiting, "deadLetters": letters, "answered": {"good": good, "bad": bad},
    })
}
