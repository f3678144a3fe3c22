//! Groups of dead letters with the same failure.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use seawall_api::{
    DeadLetterGroup, DeadLetterGroupPage, DeadLetterGroupWithSample, GroupQuery, GroupStateInput, NoteInput,
    ReplayGroupInput,
};
use seawall_hub_core::domain::dead_letter::{Fingerprint, GroupState, LetterFilter, LetterGroup};

use super::bulk::BulkCommand;
use super::{because, filled, filter, view};
use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, refused};
use crate::http::input::Input;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::reply::{ApiReply, ApiResult};

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<GroupQuery>,
) -> ApiResult<DeadLetterGroupPage> {
    check_sources(&cx.caller)?;
    let (filter, page) = (filter::of_groups(&query, &cx.caller), page_of(&query.page));
    let page = cx.hub.dead_letters.groups(filter, page).await?;
    let dead_letter_groups = page.items.iter().map(view::group).collect();
    Ok(ApiReply::new(DeadLetterGroupPage { dead_letter_groups, next_page_token: next_token(&page) }))
}

/// A group, with one of its dead letters.
pub(crate) async fn get(
    cx: RequestContext,
    Path(fingerprint): Path<String>,
) -> ApiResult<DeadLetterGroupWithSample> {
    let group = find(&cx, &fingerprint).await?;
    let sample = match group.sample {
        Some(id) => cx.hub.dead_letters.letter(id).await?,
        None => None,
    };
    let sample_letter = sample.map(|details| view::letter(&cx.hub, &details.dead));
    Ok(ApiReply::new(DeadLetterGroupWithSample { group: view::group(&group), sample_letter }))
}

/// `PATCH …/deadLetterGroups/{fingerprint}` with `{note}`.
pub(crate) async fn change(
    cx: RequestContext,
    Path(fingerprint): Path<String>,
    body: Bytes,
) -> ApiResult<DeadLetterGroup> {
    check_sources(&cx.caller)?;
    let NoteInput { note, reason } = Input::<NoteInput>::optional(&body)?.finish()?;
    let group = find(&cx, &fingerprint).await?.fingerprint;
    let noted = cx.hub.dead_letters.note_group(&because(&cx, reason), group, filled(note)).await;
    noted.map_err(refused(NOUN))?;
    current(&cx, &fingerprint).await
}

/// Defines a handler for each state: `POST …/deadLetterGroups/{fingerprint}:acknowledge` and so on.
macro_rules! states {
    ($($name:ident => $state:expr;)+) => {$(
        pub(crate) async fn $name(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<DeadLetterGroup> {
            settle(&cx, &target, &body, $state).await
        }
    )+};
}

states! {
    acknowledge => GroupState::Acknowledged;
    resolve => GroupState::Resolved;
    reopen => GroupState::Open;
}

async fn settle(
    cx: &RequestContext,
    fingerprint: &str,
    body: &Bytes,
    state: GroupState,
) -> ApiResult<DeadLetterGroup> {
    check_sources(&cx.caller)?;
    let GroupStateInput { note, reason } = Input::<GroupStateInput>::optional(body)?.finish()?;
    let group = find(cx, fingerprint).await?.fingerprint;
    let settled = cx.hub.dead_letters.settle_group(&because(cx, reason), group, state, note).await;
    settled.map_err(refused(NOUN))?;
    current(cx, fingerprint).await
}

/// Handles `POST …/deadLetterGroups/{fingerprint}:replay`.
pub(crate) async fn replay(
    cx: RequestContext,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    check_sources(&cx.caller)?;
    let command = BulkCommand::replay(Input::<ReplayGroupInput>::optional(&body)?.finish()?);
    let group = find(&cx, &target).await?;
    // All of the group have the same service. Named, the operation can say what it waits for.
    let (service, group) = (Some(group.failure.service), Some(group.fingerprint));
    let filter = LetterFilter { service, group, within: cx.caller.within(), ..LetterFilter::default() };
    command.run(&cx, &headers, filter).await
}

const NOUN: &str = "group";

/// A group that the caller may see. Any other looks as if it did not exist.
async fn find(cx: &RequestContext, fingerprint: &str) -> Result<LetterGroup, ApiError> {
    check_sources(&cx.caller)?;
    let missing = || ApiError::missing(NOUN);
    let found = cx.hub.dead_letters.group(Fingerprint::parse(fingerprint).ok_or_else(missing)?).await?;
    found.filter(|group| cx.caller.sees(&group.failure.service)).ok_or_else(missing)
}

/// Returns the group as it is now.
async fn current(cx: &RequestContext, fingerprint: &str) -> ApiResult<DeadLetterGroup> {
    Ok(ApiReply::new(view::group(&find(cx, fingerprint).await?)))
}

/// Refuses a key that is limited to some sources: a group counts the dead letters of all of them.
fn check_sources(caller: &Caller) -> Result<(), ApiError> {
    if caller.within().sources.is_none() {
        return Ok(());
    }
    let word = "this key is restricted to some sources, but groups cover all of them; filter dead letters by `group` instead";
    Err(ApiError::new("forbidden", word))
}
