//! The pages of dead letters, their groups and bulk operations.

use axum::extract::RawQuery;
use axum::http::{HeaderValue, header};
use axum::response::Redirect;
use minijinja::context;
use seawall_api::{DeadLetterGroupWithSample, DeadLetterQuery, DeadLetterWithEvidence, Operation, PageQuery};
use serde::Serialize;

use crate::dashboard::PageResult;
use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::show::encoded;
use crate::http::query::read;

const GROUPS: &str = "/api/v1/bridge/deadLetterGroups";
const LETTERS: &str = "/api/v1/bridge/deadLetters";
const OPERATIONS: &str = "/api/v1/ops/operations";
const SERVICES: &str = "/api/v1/registry/services";

/// `GET /deadLetters`: the groups, by their latest failure, newest first.
pub(super) async fn groups(mut page: PageContext) -> PageResult {
    let state = page.query.take("state").unwrap_or_else(|| "unresolved".into());
    match &*state {
        "unresolved" => page.query.add("state", "open,acknowledged"),
        "all" => {}
        state => page.query.add("state", state),
    }
    let (groups, wrong) = page.filtered(&page.query.all(GROUPS)).await?;
    let what = context! {
        groups => view(&groups), wrong, services => page.view_if(SERVICES).await, state,
        operations => page.view_if(&format!("{OPERATIONS}?page_size=5")).await,
        service => page.query.get("service"), further => page.query.get("page_token").is_some(), more => page.query.with("/deadLetters", |name| name != "page_token"),
    };
    page.page("groups.html", what).await
}

/// `GET /deadLetters/groups`: the target of links in alerts, with the service of the alert.
pub(super) async fn moved(RawQuery(query): RawQuery) -> Redirect {
    Redirect::to(&query.map_or_else(|| "/deadLetters".into(), |query| format!("/deadLetters?{query}")))
}

/// `GET /deadLetters/groups/{group}`: a group with a sample and its actions.
pub(super) async fn group(page: PageContext) -> PageResult {
    let group: DeadLetterGroupWithSample = page.read(&page.at(GROUPS)).await?;
    let letters = page.view(&format!("{LETTERS}?group={}&page_size=20", encoded(&page.name))).await?;
    let sample = match &group.group.sample {
        Some(id) => page.view_if(&format!("{LETTERS}/{}", encoded(id.as_str()))).await,
        None => None,
    };
    let operations = page.view_if(&format!("{OPERATIONS}?page_size=20")).await;
    page.page("group.html", context! { group => view(&group), letters, sample, operations }).await
}

/// `GET /deadLetters/list`: dead letters by any filter, with actions on some or all of them.
pub(super) async fn list(mut page: PageContext) -> PageResult {
    let (letters, wrong) = page.filtered(&page.query.all(LETTERS)).await?;
    page.query.take("page_token");
    let query = page.query.all("").trim_start_matches('?').to_owned();
    // A filter that can't be read is none, and the API refuses an action without a filter.
    let filter = read::<DeadLetterQuery>(Some(&query)).ok();
    let filter = filter.map(|query| DeadLetterQuery { page: PageQuery::default(), ..query });
    let what = context! {
        letters => view(&letters), wrong, services => page.view_if(SERVICES).await, values => page.query.values(),
        filter => serde_json::to_string(&filter).unwrap_or_default(), more => page.query.all("/deadLetters/list"), query,
        filtered => !page.query.is_empty(),
    };
    page.page("letters.html", what).await
}

/// `GET /deadLetters/export`: all matching dead letters as a file.
pub(super) async fn export(page: PageContext) -> PageResult {
    let path = page.query.with(&format!("{LETTERS}:export"), |name| name != "page_token");
    let mut response = page.dashboard.pass(&page.session, &path).await?;
    let name = HeaderValue::from_static("attachment; filename=\"dead-letters.jsonl\"");
    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// `GET /deadLetters/{id}`: a dead letter with its evidence.
pub(super) async fn letter(page: PageContext) -> PageResult {
    let letter: DeadLetterWithEvidence = page.read(&page.at(LETTERS)).await?;
    let (raw, data) = (pretty(&letter.raw_event), pretty(&letter.raw_event["data"]));
    let request = pretty(&letter.request.as_ref().map(|request| &request.body));
    page.page("letter.html", context! { letter => view(&letter), raw, data, request }).await
}

/// A value as JSON for people.
fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// `GET /operations`: bulk operations, newest first.
pub(super) async fn operations(page: PageContext) -> PageResult {
    let (operations, wrong) = page.filtered(&page.query.all(OPERATIONS)).await?;
    let what = context! { operations => view(&operations), wrong, more => "/operations" };
    page.page("operations.html", what).await
}

/// The page `GET /operations/{id}`.
pub(super) async fn operation(page: PageContext) -> PageResult {
    let operation: Operation = page.read(&page.at(OPERATIONS)).await?;
    let failed = match &operation.failed_delivery {
        Some(id) => page.view_if(&format!("/api/v1/bridge/deliveries/{}", encoded(id.as_str()))).await,
        None => None,
    };
    page.page("operation.html", context! { operation => view(&operation), failed }).await
}
