//! Single dead letters, and their list.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{
    self as wire, DeadLetterDeleted, DeadLetterPurged, DeadLetterQuery, NoteInput, ReasonInput, ReplayInput,
    ReplayOptions, ReplayResult, SearchState,
};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::port::store::{DeadLetterDetails, DeadLetterPage, LetterAction};
use seawall_hub_core::service::ReplayRequest;

use super::{because, edit, filled, filter, mode, view};
use crate::http::access::Caller;
use crate::http::bridge::events::idempotency_key;
use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{missing, refused, store_problem, success};
use crate::http::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

const VERBS: &str = "replay, edit, park, unpark, restore, purge";

pub(in crate::http) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<DeadLetterQuery>,
) -> HandlerResult {
    let page = page_of(&query.page);
    let filter = filter::of_query(query.filter, &cx.caller)?;
    let is_search = filter.text.is_some();
    Ok(match cx.hub.dead_letters.letters(filter, page).await {
        Ok(DeadLetterPage { page, unindexed }) => {
            let data = wire::DeadLetterPage {
                dead_letters: page.items.iter().map(|dead| view::letter(&cx.hub, dead)).collect(),
                next_page_token: next_token(&page),
                search: is_search.then_some(SearchState { unindexed }),
            };
            success(StatusCode::OK, &data)
        }
        Err(error) => store_problem(&error),
    })
}

/// `GET …/deadLetters/{id}`: the dead letter with its event, its request and every attempt.
pub(in crate::http) async fn get(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let details = find(&cx.hub, &cx.caller, &id).await?;
    let may_compare = may_compare(&cx.hub, &cx.caller, &details).await;
    Ok(success(StatusCode::OK, &view::evidence(&cx.hub, &cx.caller, &details, may_compare)))
}

/// `PATCH …/deadLetters/{id}` with `{note}`.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(id): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let NoteInput { note, reason } = Input::<NoteInput>::optional(&body)?.finish()?;
    let dead = id_of(&find(&cx.hub, &cx.caller, &id).await?);
    match cx.hub.dead_letters.note_letter(&because(&cx, reason), dead, filled(note)).await {
        Ok(()) => current(&cx.hub, &cx.caller, &id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

/// `DELETE …/deadLetters/{id}`: the dead letter can be restored until it is purged.
pub(in crate::http) async fn delete(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let dead = id_of(&find(&cx.hub, &cx.caller, &id).await?);
    if let Err(why) = cx.hub.dead_letters.move_letter(&cx, dead, LetterAction::Delete).await {
        return Ok(refused(why, "dead letter"));
    }
    let DeadLetterDetails { dead, .. } = find(&cx.hub, &cx.caller, &id).await?;
    let data = DeadLetterDeleted {
        id: dead.delivery.id.to_string().into(),
        deleted: true,
        standing: dead.state.word().into(),
        purge_at: view::purge_at(&cx.hub, dead.deleted),
    };
    Ok(success(StatusCode::OK, &data))
}

/// `POST …/deadLetters/{id}:replay` and all other verbs.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(id_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let Some((id, verb)) = split_verb(&id_verb) else { return Ok(nothing_here()) };
    let action = match verb {
        "replay" => return replay(&cx, id, &headers, &body).await,
        "edit" => return edit::edit(&cx, id, &headers, &body).await,
        "park" => LetterAction::Park,
        "unpark" => LetterAction::Unpark,
        "restore" => LetterAction::Restore,
        "purge" => LetterAction::Purge,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let ReasonInput { reason } = Input::<ReasonInput>::optional(&body)?.finish()?;
    let dead = id_of(&find(&cx.hub, &cx.caller, id).await?);
    match cx.hub.dead_letters.move_letter(&because(&cx, reason), dead, action).await {
        Ok(()) if action == LetterAction::Purge => {
            Ok(success(StatusCode::OK, &DeadLetterPurged { id: dead.to_string().into(), purged: true }))
        }
        Ok(()) => current(&cx.hub, &cx.caller, id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

async fn replay(cx: &RequestContext, id: &str, headers: &HeaderMap, body: &Bytes) -> HandlerResult {
    let input = Input::<ReplayInput>::optional(body)?.finish()?;
    let ReplayOptions { again, reason } = input.options;
    let (mode, again) = (mode(input.mode.as_ref()), again.unwrap_or(false));
    let details = find(&cx.hub, &cx.caller, id).await?;
    check_target(&cx.hub, &cx.caller, &details, mode)?;
    let key = idempotency_key(headers, &cx.caller)?;
    let request = ReplayRequest { mode, again, key };
    Ok(match cx.hub.dead_letters.replay(&because(cx, reason), &details, &request).await {
        Ok(delivery) => {
            let replay_of = id_of(&details).to_string().into();
            success(StatusCode::ACCEPTED, &ReplayResult { delivery: delivery.to_string().into(), replay_of })
        }
        Err(why) => refused(why, "dead letter"),
    })
}

/// A dead letter that the caller may see. Any other looks as if it did not exist.
pub(super) async fn find(
    hub: &Server,
    caller: &Caller,
    id: &str,
) -> Result<DeadLetterDetails, EarlyResponse> {
    let Some(id) = DeliveryId::parse(id) else { return Err(missing("dead letter").into()) };
    match hub.dead_letters.letter(id).await {
        Ok(Some(details)) if sees(caller, &details) => Ok(details),
        Ok(_) => Err(missing("dead letter").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

/// The id of a dead letter is that of its delivery.
pub(super) fn id_of(details: &DeadLetterDetails) -> DeliveryId {
    details.dead.delivery.id
}

pub(super) fn sees(caller: &Caller, details: &DeadLetterDetails) -> bool {
    caller.sees(&details.dead.delivery.service) && caller.sees_source(&details.dead.source)
}

/// Refuses a replay to a service that the caller may not see: the current rule may send to another one.
pub(super) fn check_target(
    hub: &Server,
    caller: &Caller,
    details: &DeadLetterDetails,
    mode: ReplayMode,
) -> Result<(), Box<Response>> {
    let current = hub.registry.rule(&details.dead.delivery.rule.0).filter(|_| mode == ReplayMode::Render);
    match current {
        Some(rule) if !caller.sees(&rule.service) => Err(Box::new(missing("dead letter"))),
        _ => Ok(()),
    }
}

/// True if the caller may see the request that the dead letter replays. It may have been sent to another service.
pub(super) async fn may_compare(hub: &Server, caller: &Caller, details: &DeadLetterDetails) -> bool {
    let Some(original) = details.dead.delivery.replay_of.filter(|_| !caller.sees_all()) else { return true };
    matches!(hub.bridge.delivery(original).await, Ok(Some((stored, _))) if caller.sees(&stored.service))
}

/// Returns the dead letter as it is now.
async fn current(hub: &Server, caller: &Caller, id: &str) -> HandlerResult {
    let details = find(hub, caller, id).await?;
    Ok(success(StatusCode::OK, &view::letter(hub, &details.dead)))
}
