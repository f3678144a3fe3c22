//! Single dead letters, and their list.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::HeaderMap;
use seawall_api::{
    self as wire, DeadLetter, DeadLetterDeleted, DeadLetterPurged, DeadLetterQuery, DeadLetterWithEvidence,
    NoteInput, ReasonInput, ReplayInput, ReplayOptions, ReplayResult, SearchState,
};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::operation::ReplayMode;
use seawall_hub_core::port::store::{DeadLetterDetails, DeadLetterPage, LetterAction};
use seawall_hub_core::service::ReplayRequest;

use super::{because, filled, filter, mode, view};
use crate::http::access::Caller;
use crate::http::bridge::events::idempotency_key;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<DeadLetterQuery>,
) -> ApiResult<wire::DeadLetterPage> {
    let page = page_of(&query.page);
    let filter = filter::of_query(query.filter, &cx.caller)?;
    let is_search = filter.text.is_some();
    let DeadLetterPage { page, unindexed } = cx.hub.dead_letters.letters(filter, page).await?;
    Ok(ApiReply::new(wire::DeadLetterPage {
        dead_letters: page.items.iter().map(|dead| view::letter(&cx.hub, dead)).collect(),
        next_page_token: next_token(&page),
        search: is_search.then_some(SearchState { unindexed }),
    }))
}

/// `GET …/deadLetters/{id}`: the dead letter with its event, its request and every attempt.
pub(crate) async fn get(cx: RequestContext, Path(id): Path<String>) -> ApiResult<DeadLetterWithEvidence> {
    let details = find(&cx, &id).await?;
    let may_compare = may_compare(&cx.hub, &cx.caller, &details).await;
    Ok(ApiReply::new(view::evidence(&cx.hub, &cx.caller, &details, may_compare)))
}

/// `PATCH …/deadLetters/{id}` with `{note}`.
pub(crate) async fn change(cx: RequestContext, Path(id): Path<String>, body: Bytes) -> ApiResult<DeadLetter> {
    let NoteInput { note, reason } = Input::<NoteInput>::optional(&body)?.finish()?;
    let dead = id_of(&find(&cx, &id).await?);
    let noted = cx.hub.dead_letters.note_letter(&because(&cx, reason), dead, filled(note)).await;
    noted.map_err(refused(NOUN))?;
    current(&cx, &id).await
}

/// `DELETE …/deadLetters/{id}`: the dead letter can be restored until it is purged.
pub(crate) async fn delete(cx: RequestContext, Path(id): Path<String>) -> ApiResult<DeadLetterDeleted> {
    let dead = id_of(&find(&cx, &id).await?);
    cx.hub.dead_letters.move_letter(&cx, dead, LetterAction::Delete).await.map_err(refused(NOUN))?;
    let DeadLetterDetails { dead, .. } = find(&cx, &id).await?;
    Ok(ApiReply::new(DeadLetterDeleted {
        id: dead.delivery.id.to_string().into(),
        deleted: true,
        standing: dead.state.word().into(),
        purge_at: view::purge_at(&cx.hub, dead.deleted),
    }))
}

/// Defines a handler for each action that leaves the dead letter where it is: `POST …/deadLetters/{id}:park` and so on.
macro_rules! actions {
    ($($name:ident => $action:expr;)+) => {$(
        pub(crate) async fn $name(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<DeadLetter> {
            act(&cx, &target, &body, $action).await?;
            current(&cx, &target).await
        }
    )+};
}

actions! {
    park => LetterAction::Park;
    unpark => LetterAction::Unpark;
    restore => LetterAction::Restore;
}

/// Handles `POST …/deadLetters/{id}:purge`.
pub(crate) async fn purge(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<DeadLetterPurged> {
    let dead = act(&cx, &target, &body, LetterAction::Purge).await?;
    Ok(ApiReply::new(DeadLetterPurged { id: dead.to_string().into(), purged: true }))
}

async fn act(
    cx: &RequestContext,
    id: &str,
    body: &Bytes,
    action: LetterAction,
) -> Result<DeliveryId, ApiError> {
    let ReasonInput { reason } = Input::<ReasonInput>::optional(body)?.finish()?;
    let dead = id_of(&find(cx, id).await?);
    cx.hub.dead_letters.move_letter(&because(cx, reason), dead, action).await.map_err(refused(NOUN))?;
    Ok(dead)
}

/// Handles `POST …/deadLetters/{id}:replay`.
pub(crate) async fn replay(
    cx: RequestContext,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<ReplayResult> {
    let input = Input::<ReplayInput>::optional(&body)?.finish()?;
    let ReplayOptions { again, reason } = input.options;
    let (mode, again) = (mode(input.mode.as_ref()), again.unwrap_or(false));
    let details = find(&cx, &target).await?;
    check_target(&cx, &details, mode)?;
    let key = idempotency_key(&headers, &cx.caller)?;
    let request = ReplayRequest { mode, again, key };
    let delivery = cx.hub.dead_letters.replay(&because(&cx, reason), &details, &request).await;
    let delivery = delivery.map_err(refused(NOUN))?.to_string().into();
    Ok(ApiReply::accepted(ReplayResult { delivery, replay_of: id_of(&details).to_string().into() }))
}

/// What a dead letter is called in messages.
pub(super) const NOUN: &str = "dead letter";

/// A dead letter that the caller may see. Any other looks as if it did not exist.
pub(super) async fn find(cx: &RequestContext, id: &str) -> Result<DeadLetterDetails, ApiError> {
    let missing = || ApiError::missing(NOUN);
    let found = cx.hub.dead_letters.letter(DeliveryId::parse(id).ok_or_else(missing)?).await?;
    found.filter(|details| sees(&cx.caller, details)).ok_or_else(missing)
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
    cx: &RequestContext,
    details: &DeadLetterDetails,
    mode: ReplayMode,
) -> Result<(), ApiError> {
    let current = cx.hub.registry.rule(&details.dead.delivery.rule.0).filter(|_| mode == ReplayMode::Render);
    match current {
        Some(rule) if !cx.caller.sees(&rule.service) => Err(ApiError::missing(NOUN)),
        _ => Ok(()),
    }
}

/// True if the caller may see the request that the dead letter replays. It may have been sent to another service.
pub(super) async fn may_compare(hub: &Server, caller: &Caller, details: &DeadLetterDetails) -> bool {
    let Some(original) = details.dead.delivery.replay_of.filter(|_| !caller.sees_all()) else { return true };
    matches!(hub.bridge.delivery(original).await, Ok(Some((stored, _))) if caller.sees(&stored.service))
}

/// Returns the dead letter as it is now.
async fn current(cx: &RequestContext, id: &str) -> ApiResult<DeadLetter> {
    Ok(ApiReply::new(view::letter(&cx.hub, &find(cx, id).await?.dead)))
}
