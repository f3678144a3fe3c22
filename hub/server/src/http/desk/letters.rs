//! Dead letters, one by one.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::Mode;
use seawall_hub_core::port::store::{Desk, Letters, Store, Tray, WholeLetter};
use seawall_hub_core::service::{Again, because};
use serde_json::json;

use super::super::access::Caller;
use super::super::events::idempotency_key;
use super::super::fields::Fields;
use super::super::query::{Query, paged};
use super::super::reply::{missing, refused, store_problem, success};
use super::super::{Caught, Early, no_verb, nothing_here, split_verb};
use super::{edit, end, fields_of, filter, mode, note, reason, shown};
use crate::hub::Hub;

const VERBS: &str = "replay, edit, park, unpark, restore, purge";

pub(in crate::http) async fn list(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let (filter, page) = (filter::letters(&mut query, &caller), query.page());
    query.end(&format!("{}, page_size, page_token", filter::NAMES))?;
    let searched = filter.text.is_some();
    Ok(match hub.store().dead_letters(filter, page).await {
        Ok(Letters { page, unindexed }) => {
            let mut data = paged(&page, "deadLetters", |dead| shown::letter(&hub, dead));
            if searched {
                data["search"] = json!({"unindexed": unindexed});
            }
            success(StatusCode::OK, &data)
        }
        Err(error) => store_problem(&error),
    })
}

/// Everything that is known of it: what happened, what was to be sent, and every try.
pub(in crate::http) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Caught {
    let (_, whole) = find(&hub, &caller, &id).await?;
    let compared = may_compare(&hub, &caller, &whole).await;
    Ok(success(StatusCode::OK, &shown::whole(&hub, &caller, &whole, compared)))
}

/// `PATCH …/deadLetters/{id}` with `{note}`.
pub(in crate::http) async fn change(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Caught {
    let mut fields = fields_of(&body)?;
    let (note, reason) = (note(&mut fields), reason(&mut fields));
    end(fields, "note, reason")?;
    let (dead, _) = find(&hub, &caller, &id).await?;
    match because(reason, hub.note_letter(dead, note)).await {
        Ok(()) => summary(&hub, &caller, &id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

/// Out of sight, and back again if somebody wants it.
pub(in crate::http) async fn delete(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Caught {
    let (dead, _) = find(&hub, &caller, &id).await?;
    if let Err(why) = hub.move_letter(dead, Tray::Bin).await {
        return Ok(refused(why, "dead letter"));
    }
    let (_, WholeLetter { dead, .. }) = find(&hub, &caller, &id).await?;
    let purge_at = shown::purge_at(&hub, dead.deleted).map(|at| at.to_string());
    let data = json!({"id": id, "deleted": true, "standing": dead.standing.word(), "purgeAt": purge_at});
    Ok(success(StatusCode::OK, &data))
}

/// `POST …/deadLetters/{id}:replay` and all other verbs.
pub(in crate::http) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(id_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let Some((id, verb)) = split_verb(&id_verb) else { return Ok(nothing_here()) };
    let tray = match verb {
        "replay" => return replay(&hub, &caller, id, &headers, fields_of(&body)?).await,
        "edit" => return edit::edit(&hub, &caller, id, &headers, fields_of(&body)?).await,
        "park" => Tray::Aside,
        "unpark" => Tray::Back,
        "restore" => Tray::OutOfBin,
        "purge" => Tray::Nowhere,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    put(&hub, &caller, id, fields_of(&body)?, tray).await
}

async fn put(hub: &Hub, caller: &Caller, id: &str, mut fields: Fields, to: Tray) -> Caught {
    let reason = reason(&mut fields);
    end(fields, "reason")?;
    let (dead, _) = find(hub, caller, id).await?;
    match because(reason, hub.move_letter(dead, to)).await {
        Ok(()) if to == Tray::Nowhere => Ok(success(StatusCode::OK, &json!({"id": id, "purged": true}))),
        Ok(()) => summary(hub, caller, id).await,
        Err(why) => Ok(refused(why, "dead letter")),
    }
}

/// With `{mode, again}`.
async fn replay(hub: &Hub, caller: &Caller, id: &str, headers: &HeaderMap, mut fields: Fields) -> Caught {
    let (mode, again, reason) = (mode(&mut fields), fields.switch("again", false), reason(&mut fields));
    end(fields, "mode, again, reason")?;
    let (dead, whole) = find(hub, caller, id).await?;
    may_send(hub, caller, &whole, mode)?;
    let key = idempotency_key(headers, caller)?;
    Ok(match because(reason, hub.replay(&Again { dead, mode, again, key })).await {
        Ok(delivery) => {
            let data = json!({"delivery": delivery.to_string(), "replayOf": dead.to_string()});
            success(StatusCode::ACCEPTED, &data)
        }
        Err(why) => refused(why, "dead letter"),
    })
}

/// A dead letter that is for the caller to see. What is not answers exactly like one that is not there.
pub(super) async fn find(hub: &Hub, caller: &Caller, id: &str) -> Result<(DeliveryId, WholeLetter), Early> {
    let Some(id) = DeliveryId::parse(id) else { return Err(missing("dead letter").into()) };
    match hub.store().dead_letter(id).await {
        Ok(Some(whole)) if sees(caller, &whole) => Ok((id, whole)),
        Ok(_) => Err(missing("dead letter").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

pub(super) fn sees(caller: &Caller, whole: &WholeLetter) -> bool {
    caller.sees(&whole.dead.delivery.service) && caller.sees_source(&whole.dead.source)
}

/// Whether whoever gets it in this mode is for the caller too: a rule may send elsewhere today.
pub(super) fn may_send(
    hub: &Hub,
    caller: &Caller,
    whole: &WholeLetter,
    mode: Mode,
) -> Result<(), Box<Response>> {
    let today = hub.rule(&whole.dead.delivery.rule.0).filter(|_| mode == Mode::Render);
    match today {
        Some(rule) if !caller.sees(&rule.service) => Err(Box::new(missing("dead letter"))),
        _ => Ok(()),
    }
}

/// Whether the caller may see the request that it replays, which may have been for another service.
pub(super) async fn may_compare(hub: &Hub, caller: &Caller, whole: &WholeLetter) -> bool {
    let Some(original) = whole.dead.delivery.replay_of.filter(|_| !caller.sees_all()) else { return true };
    matches!(hub.store().delivery(original).await, Ok(Some((kept, _))) if caller.sees(&kept.service))
}

/// As it is now.
async fn summary(hub: &Hub, caller: &Caller, id: &str) -> Caught {
    let (_, whole) = find(hub, caller, id).await?;
    Ok(success(StatusCode::OK, &shown::letter(hub, &whole.dead)))
}
