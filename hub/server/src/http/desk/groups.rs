//! Dead letters that have failed alike.

use axum::body::Bytes;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupState, LetterFilter, LetterGroup};
use serde_json::json;

use super::super::access::Caller;
use super::super::context::RequestContext;
use super::super::merge::merged;
use super::super::query::{Query, paged};
use super::super::reply::{missing, problem, refused, store_problem, success};
use super::super::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use super::many::BulkBody;
use super::{end, fields_of, filter, note, reason, shown};
use crate::hub::Server;

const VERBS: &str = "replay, acknowledge, resolve, reopen";

pub(in crate::http) async fn list(cx: RequestContext, RawQuery(query): RawQuery) -> HandlerResult {
    of_all_sources(&cx.caller)?;
    let mut query = Query::new(query.as_deref());
    let (filter, page) = (filter::groups(&mut query, &cx.caller), query.page());
    query.end("service, rule, state, page_size, page_token")?;
    Ok(match cx.hub.dead_letters.groups(filter, page).await {
        Ok(page) => success(StatusCode::OK, &paged(&page, "deadLetterGroups", shown::group)),
        Err(error) => store_problem(&error),
    })
}

/// A group, with one of its dead letters.
pub(in crate::http) async fn get(cx: RequestContext, Path(fingerprint): Path<String>) -> HandlerResult {
    of_all_sources(&cx.caller)?;
    let group = find(&cx.hub, &cx.caller, &fingerprint).await?;
    let sample = match group.sample {
        Some(id) => cx.hub.dead_letters.letter(id).await.map_err(|error| store_problem(&error))?,
        None => None,
    };
    let sample = sample.map(|whole| shown::letter(&cx.hub, &whole.dead));
    Ok(success(StatusCode::OK, &merged(shown::group(&group), json!({"sampleLetter": sample}))))
}

/// `PATCH …/deadLetterGroups/{fingerprint}` with `{note}`.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(fingerprint): Path<String>,
    body: Bytes,
) -> HandlerResult {
    of_all_sources(&cx.caller)?;
    let mut fields = fields_of(&body)?;
    let (note, reason) = (note(&mut fields), reason(&mut fields));
    end(fields, "note, reason")?;
    let group = find(&cx.hub, &cx.caller, &fingerprint).await?;
    match cx.hub.dead_letters.note_group(&cx.with_reason(reason), group.fingerprint, note).await {
        Ok(()) => as_it_is(&cx.hub, &cx.caller, &fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

/// `POST …/deadLetterGroups/{fingerprint}:replay`, `:acknowledge`, `:resolve`, `:reopen`.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(named): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    of_all_sources(&cx.caller)?;
    let Some((fingerprint, verb)) = split_verb(&named) else { return Ok(nothing_here()) };
    let state = match verb {
        "replay" => return replay(&cx, fingerprint, &headers, &body).await,
        "acknowledge" => GroupState::Acknowledged,
        "resolve" => GroupState::Resolved,
        "reopen" => GroupState::Open,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let mut fields = fields_of(&body)?;
    let (note, reason) = (fields.text("note"), reason(&mut fields));
    end(fields, "note, reason")?;
    let group = find(&cx.hub, &cx.caller, fingerprint).await?;
    match cx.hub.dead_letters.settle_group(&cx.with_reason(reason), group.fingerprint, state, note).await {
        Ok(()) => as_it_is(&cx.hub, &cx.caller, fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

async fn replay(cx: &RequestContext, fingerprint: &str, headers: &HeaderMap, body: &Bytes) -> HandlerResult {
    let mut fields = fields_of(body)?;
    let wanted = BulkBody::read(&mut fields, None);
    end(fields, wanted.known())?;
    let group = find(&cx.hub, &cx.caller, fingerprint).await?;
    // The service is the group's anyway, and whoever looks at the work is told what it waits for.
    let (service, group) = (Some(group.failure.service), Some(group.fingerprint));
    let filter = LetterFilter { service, group, within: cx.caller.within(), ..LetterFilter::default() };
    wanted.done(cx, headers, filter).await
}

/// A group that is for the caller to see. What is not answers exactly like one that is not there.
async fn find(hub: &Server, caller: &Caller, fingerprint: &str) -> Result<LetterGroup, EarlyResponse> {
    let Some(fingerprint) = Fingerprint::parse(fingerprint) else { return Err(missing("group").into()) };
    match hub.dead_letters.group(fingerprint).await {
        Ok(Some(group)) if caller.sees(&group.failure.service) => Ok(group),
        Ok(_) => Err(missing("group").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

async fn as_it_is(hub: &Server, caller: &Caller, fingerprint: &str) -> HandlerResult {
    Ok(success(StatusCode::OK, &shown::group(&find(hub, caller, fingerprint).await?)))
}

/// A key that is limited to some sources may not look at groups: they count what came from all of them.
fn of_all_sources(caller: &Caller) -> Result<(), Box<Response>> {
    if caller.within().sources.is_none() {
        return Ok(());
    }
    let word = "this key is restricted to some sources, but groups cover all of them; filter dead letters by `group` instead";
    Err(Box::new(problem(StatusCode::FORBIDDEN, "forbidden", word, false)))
}
