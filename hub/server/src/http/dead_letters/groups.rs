//! Groups of dead letters with the same failure.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{
    DeadLetterGroupPage, DeadLetterGroupWithSample, GroupQuery, GroupStateInput, NoteInput, ReplayGroupInput,
};
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupState, LetterFilter, LetterGroup};

use super::bulk::BulkCommand;
use super::{because, filled, filter, view};
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{missing, problem, refused, store_problem, success};
use crate::http::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

const VERBS: &str = "replay, acknowledge, resolve, reopen";

pub(in crate::http) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<GroupQuery>,
) -> HandlerResult {
    check_sources(&cx.caller)?;
    let (filter, page) = (filter::of_groups(&query, &cx.caller), page_of(&query.page));
    Ok(match cx.hub.dead_letters.groups(filter, page).await {
        Ok(page) => {
            let dead_letter_groups = page.items.iter().map(view::group).collect();
            let page = DeadLetterGroupPage { dead_letter_groups, next_page_token: next_token(&page) };
            success(StatusCode::OK, &page)
        }
        Err(error) => store_problem(&error),
    })
}

/// A group, with one of its dead letters.
pub(in crate::http) async fn get(cx: RequestContext, Path(fingerprint): Path<String>) -> HandlerResult {
    check_sources(&cx.caller)?;
    let group = find(&cx.hub, &cx.caller, &fingerprint).await?;
    let sample = match group.sample {
        Some(id) => cx.hub.dead_letters.letter(id).await.map_err(|error| store_problem(&error))?,
        None => None,
    };
    let sample_letter = sample.map(|details| view::letter(&cx.hub, &details.dead));
    Ok(success(StatusCode::OK, &DeadLetterGroupWithSample { group: view::group(&group), sample_letter }))
}

/// `PATCH …/deadLetterGroups/{fingerprint}` with `{note}`.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(fingerprint): Path<String>,
    body: Bytes,
) -> HandlerResult {
    check_sources(&cx.caller)?;
    let NoteInput { note, reason } = Input::<NoteInput>::optional(&body)?.finish()?;
    let group = find(&cx.hub, &cx.caller, &fingerprint).await?;
    match cx.hub.dead_letters.note_group(&because(&cx, reason), group.fingerprint, filled(note)).await {
        Ok(()) => current(&cx.hub, &cx.caller, &fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

/// `POST …/deadLetterGroups/{fingerprint}:replay`, `:acknowledge`, `:resolve`, `:reopen`.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(fingerprint_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    check_sources(&cx.caller)?;
    let Some((fingerprint, verb)) = split_verb(&fingerprint_verb) else { return Ok(nothing_here()) };
    let state = match verb {
        "replay" => return replay(&cx, fingerprint, &headers, &body).await,
        "acknowledge" => GroupState::Acknowledged,
        "resolve" => GroupState::Resolved,
        "reopen" => GroupState::Open,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let GroupStateInput { note, reason } = Input::<GroupStateInput>::optional(&body)?.finish()?;
    let group = find(&cx.hub, &cx.caller, fingerprint).await?;
    match cx.hub.dead_letters.settle_group(&because(&cx, reason), group.fingerprint, state, note).await {
        Ok(()) => current(&cx.hub, &cx.caller, fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

async fn replay(cx: &RequestContext, fingerprint: &str, headers: &HeaderMap, body: &Bytes) -> HandlerResult {
    let command = BulkCommand::replay(Input::<ReplayGroupInput>::optional(body)?.finish()?);
    let group = find(&cx.hub, &cx.caller, fingerprint).await?;
    // All of the group have the same service. Named, the operation can say what it waits for.
    let (service, group) = (Some(group.failure.service), Some(group.fingerprint));
    let filter = LetterFilter { service, group, within: cx.caller.within(), ..LetterFilter::default() };
    command.run(cx, headers, filter).await
}

/// A group that the caller may see. Any other looks as if it did not exist.
async fn find(hub: &Server, caller: &Caller, fingerprint: &str) -> Result<LetterGroup, EarlyResponse> {
    let Some(fingerprint) = Fingerprint::parse(fingerprint) else { return Err(missing("group").into()) };
    match hub.dead_letters.group(fingerprint).await {
        Ok(Some(group)) if caller.sees(&group.failure.service) => Ok(group),
        Ok(_) => Err(missing("group").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

async fn current(hub: &Server, caller: &Caller, fingerprint: &str) -> HandlerResult {
    Ok(success(StatusCode::OK, &view::group(&find(hub, caller, fingerprint).await?)))
}

/// Refuses a key that is limited to some sources: a group counts the dead letters of all of them.
fn check_sources(caller: &Caller) -> Result<(), Box<Response>> {
    if caller.within().sources.is_none() {
        return Ok(());
    }
    let word = "this key is restricted to some sources, but groups cover all of them; filter dead letters by `group` instead";
    Err(Box::new(problem(StatusCode::FORBIDDEN, "forbidden", word, false)))
}
