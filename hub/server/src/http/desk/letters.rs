//! Dead letters, one by one.

use axum::body::Bytes;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::port::store::{DeadLetterDetails, DeadLetterPage, LetterAction};
use seawall_hub_core::service::ReplayRequest;
use serde_json::json;

use super::super::access::Caller;
use super::super::context::RequestContext;
use super::super::events::idempotency_key;
use super::super::fields::Fields;
use super::super::query::{Query, paged};
use super::super::reply::{missing, refused, store_problem, success};
use super::super::{EarlyResponse, HandlerResult, no_verb, nothing_here, split_verb};
use super::{edit, end, fields_of, filter, mode, note, reason, shown};
use crate::hub::Server;

const VERBS: &str = "replay, edit, park, unpark, restore, purge";

pub(in crate::http) async fn list(cx: RequestContext, RawQuery(query): RawQuery) -> HandlerResult {
    let mut query = Query::new(query.as_deref());
    let (filter, page) = (filter::letters(&mut query, &cx.caller), query.page());
    query.end(&format!("{}, page_size, page_token", filter::NAMES))?;
    let searched = filter.text.is_some();
    Ok(match cx.hub.dead_letters.letters(filter, page).await {
        Ok(DeadLetterPage { page, unindexed }) => {
            let mut data = paged(&page, "deadLetters", |dead| shown::letter(&cx.hub, dead));
            if searched {
                data["search"] = json!({"unindexed": unindexed});
            }
            success(StatusCode::OK, &data)
        }
        Err(error) => store_problem(&error),
    })
}

/// Everything that is known of it: what happened, what was to be sent, and every try.
pub(in crate::http) async fn get(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let (_, whole) = find(&cx.hub, &cx.caller, &id).await?;
    let compared = may_compare(&cx.hub, &cx.caller, &whole).await;
    Ok(success(StatusCode::OK, &shown::whole(&cx.hub, &cx.caller, &whole, compared)))
}

/// `PATCH …/deadLetters/{id}` with `{note}`.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(id): Path<String>,
    body: Bytes,
) -> HandlerResult {
    let mut fields = fields_of(&body)?;
    let (note, reason) = (note(&mut fields), reason(&mut fields));
    end(fields, "note, reason")?;
    let (dead, _) = find(&cx.hub, &cx.caller, &id).await?;
    match cx.hub.dead_letters.note_letter(&cx.with_reason(reason), dead, note).await {
        Ok(()) => summary(&cx.hub, &cx.caller, &id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

/// Out of sight, and back again if somebody wants it.
pub(in crate::http) async fn delete(cx: RequestContext, Path(id): Path<String>) -> HandlerResult {
    let (dead, _) = find(&cx.hub, &cx.caller, &id).await?;
    if let Err(why) = cx.hub.dead_letters.move_letter(&cx, dead, LetterAction::Delete).await {
        return Ok(refused(why, "dead letter"));
    }
    let (_, DeadLetterDetails { dead, .. }) = find(&cx.hub, &cx.caller, &id).await?;
    let purge_at = shown::purge_at(&cx.hub, dead.deleted).map(|at| at.to_string());
    let data = json!({"id": id, "deleted": true, "standing": dead.state.word(), "purgeAt": purge_at});
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
    let tray = match verb {
        "replay" => return replay(&cx, id, &headers, fields_of(&body)?).await,
        "edit" => return edit::edit(&cx, id, &headers, fields_of(&body)?).await,
        "park" => LetterAction::Park,
        "unpark" => LetterAction::Unpark,
        "restore" => LetterAction::Restore,
        "purge" => LetterAction::Purge,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    put(&cx, id, fields_of(&body)?, tray).await
}

async fn put(cx: &RequestContext, id: &str, mut fields: Fields, to: LetterAction) -> HandlerResult {
    let reason = reason(&mut fields);
    end(fields, "reason")?;
    let (dead, _) = find(&cx.hub, &cx.caller, id).await?;
    match cx.hub.dead_letters.move_letter(&cx.with_reason(reason), dead, to).await {
        Ok(()) if to == LetterAction::Purge => {
            Ok(success(StatusCode::OK, &json!({"id": id, "purged": true})))
        }
        Ok(()) => summary(&cx.hub, &cx.caller, id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

/// With `{mode, again}`.
async fn replay(cx: &RequestContext, id: &str, headers: &HeaderMap, mut fields: Fields) -> HandlerResult {
    let (mode, again, reason) = (mode(&mut fields), fields.switch("again", false), reason(&mut fields));
    end(fields, "mode, again, reason")?;
    let (dead, whole) = find(&cx.hub, &cx.caller, id).await?;
    may_send(&cx.hub, &cx.caller, &whole, mode)?;
    let key = idempotency_key(headers, &cx.caller)?;
    Ok(
        match cx
            .hub
            .dead_letters
            .replay(&cx.with_reason(reason), &whole, &ReplayRequest { mode, again, key })
            .await
        {
            Ok(delivery) => {
                let data = json!({"delivery": delivery.to_string(), "replayOf": dead.to_string()});
                success(StatusCode::ACCEPTED, &data)
            }
            Err(why) => refused(why, "dead letter"),
        },
    )
}

/// A dead letter that is for the caller to see. What is not answers exactly like one that is not there.
pub(super) async fn find(
    hub: &Server,
    caller: &Caller,
    id: &str,
) -> Result<(DeliveryId, DeadLetterDetails), EarlyResponse> {
    let Some(id) = DeliveryId::parse(id) else { return Err(missing("dead letter").into()) };
    match hub.dead_letters.letter(id).await {
        Ok(Some(whole)) if sees(caller, &whole) => Ok((id, whole)),
        Ok(_) => Err(missing("dead letter").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

pub(super) fn sees(caller: &Caller, whole: &DeadLetterDetails) -> bool {
    caller.sees(&whole.dead.delivery.service) && caller.sees_source(&whole.dead.source)
}

/// Whether whoever gets it in this mode is for the caller too: a rule may send elsewhere today.
pub(super) fn may_send(
    hub: &Server,
    caller: &Caller,
    whole: &DeadLetterDetails,
    mode: ReplayMode,
) -> Result<(), Box<Response>> {
    let today = hub.registry.rule(&whole.dead.delivery.rule.0).filter(|_| mode == ReplayMode::Render);
    match today {
        Some(rule) if !caller.sees(&rule.service) => Err(Box::new(missing("dead letter"))),
        _ => Ok(()),
    }
}

/// Whether the caller may see the request that it replays, which may have been for another service.
pub(super) async fn may_compare(hub: &Server, caller: &Caller, whole: &DeadLetterDetails) -> bool {
    let Some(original) = whole.dead.delivery.replay_of.filter(|_| !caller.sees_all()) else { return true };
    matches!(hub.bridge.delivery(original).await, Ok(Some((kept, _))) if caller.sees(&kept.service))
}

/// As it is now.
async fn summary(hub: &Server, caller: &Caller, id: &str) -> HandlerResult {
    let (_, whole) = find(hub, caller, id).await?;
    Ok(success(StatusCode::OK, &shown::letter(hub, &whole.dead)))
}
