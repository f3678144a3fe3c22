//! Dead letters that have failed alike.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::letter::{Fingerprint, Group, GroupState, LetterFilter};
use seawall_hub_core::port::store::Desk;
use seawall_hub_core::service::because;
use serde_json::json;

use super::super::access::Caller;
use super::super::query::{Query, paged};
use super::super::reply::{missing, problem, refused, store_problem, success};
use super::super::services::merged;
use super::super::{Caught, Early, no_verb, nothing_here, split_verb};
use super::many::Wanted;
use super::{end, fields_of, filter, note, reason, shown};
use crate::hub::Hub;

const VERBS: &str = "replay, acknowledge, resolve, reopen";

pub(in crate::http) async fn list(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Caught {
    of_all_sources(&caller)?;
    let mut query = Query::new(query.as_deref());
    let (filter, page) = (filter::groups(&mut query, &caller), query.page());
    query.end("service, rule, state, page_size, page_token")?;
    Ok(match hub.store().groups(filter, page).await {
        Ok(page) => success(StatusCode::OK, &paged(&page, "deadLetterGroups", shown::group)),
        Err(error) => store_problem(&error),
    })
}

/// A group, with one of its dead letters.
pub(in crate::http) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(fingerprint): Path<String>,
) -> Caught {
    of_all_sources(&caller)?;
    let group = find(&hub, &caller, &fingerprint).await?;
    let sample = match group.sample {
        Some(id) => hub.store().dead_letter(id).await.map_err(|error| store_problem(&error))?,
        None => None,
    };
    let sample = sample.map(|whole| shown::letter(&hub, &whole.dead));
    Ok(success(StatusCode::OK, &merged(shown::group(&group), json!({"sampleLetter": sample}))))
}

/// `PATCH …/deadLetterGroups/{fingerprint}` with `{note}`.
pub(in crate::http) async fn change(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(fingerprint): Path<String>,
    body: Bytes,
) -> Caught {
    of_all_sources(&caller)?;
    let mut fields = fields_of(&body)?;
    let (note, reason) = (note(&mut fields), reason(&mut fields));
    end(fields, "note, reason")?;
    let group = find(&hub, &caller, &fingerprint).await?;
    match because(reason, hub.note_group(group.fingerprint, note)).await {
        Ok(()) => as_it_is(&hub, &caller, &fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

/// `POST …/deadLetterGroups/{fingerprint}:replay`, `:acknowledge`, `:resolve`, `:reopen`.
pub(in crate::http) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(named): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    of_all_sources(&caller)?;
    let Some((fingerprint, verb)) = split_verb(&named) else { return Ok(nothing_here()) };
    let state = match verb {
        "replay" => return replay(&hub, &caller, fingerprint, &headers, &body).await,
        "acknowledge" => GroupState::Acknowledged,
        "resolve" => GroupState::Resolved,
        "reopen" => GroupState::Open,
        verb => return Ok(no_verb(verb, VERBS)),
    };
    let mut fields = fields_of(&body)?;
    let (note, reason) = (fields.text("note"), reason(&mut fields));
    end(fields, "note, reason")?;
    let group = find(&hub, &caller, fingerprint).await?;
    match because(reason, hub.settle_group(group.fingerprint, state, note)).await {
        Ok(()) => as_it_is(&hub, &caller, fingerprint).await,
        Err(why) => Ok(refused(why, "group")),
    }
}

async fn replay(hub: &Hub, caller: &Caller, fingerprint: &str, headers: &HeaderMap, body: &Bytes) -> Caught {
    let mut fields = fields_of(body)?;
    let wanted = Wanted::read(&mut fields, None);
    end(fields, wanted.known())?;
    let group = find(hub, caller, fingerprint).await?;
    // The service is the group's anyway, and whoever looks at the work is told what it waits for.
    let (service, group) = (Some(group.failure.service), Some(group.fingerprint));
    let filter = LetterFilter { service, group, within: caller.within(), ..LetterFilter::default() };
    wanted.done(hub, caller, headers, filter).await
}

/// A group that is for the caller to see. What is not answers exactly like one that is not there.
async fn find(hub: &Hub, caller: &Caller, fingerprint: &str) -> Result<Group, Early> {
    let Some(fingerprint) = Fingerprint::parse(fingerprint) else { return Err(missing("group").into()) };
    match hub.store().group(fingerprint).await {
        Ok(Some(group)) if caller.sees(&group.failure.service) => Ok(group),
        Ok(_) => Err(missing("group").into()),
        Err(error) => Err(store_problem(&error).into()),
    }
}

async fn as_it_is(hub: &Hub, caller: &Caller, fingerprint: &str) -> Caught {
    Ok(success(StatusCode::OK, &shown::group(&find(hub, caller, fingerprint).await?)))
}

/// A key that is limited to some sources may not look at groups: they count what came from all of them.
fn of_all_sources(caller: &Caller) -> Result<(), Box<Response>> {
    if caller.within().sources.is_none() {
        return Ok(());
    }
    let word =
        "this key is limited to some sources, and groups are of all; choose dead letters by `group` instead";
    Err(Box::new(problem(StatusCode::FORBIDDEN, "forbidden", word, false)))
}
