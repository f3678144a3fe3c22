//! The pages of dead letters, their groups and bulk operations.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Redirect;
use minijinja::context;
use seawall_api::{DeadLetterQuery, PageQuery};

use crate::dashboard::ask::view;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};
use crate::http::query::{pairs_of, read};

/// The parameters of a query that are not empty: a form sends every field. The API refuses what it does not know.
fn filled(query: Option<&str>) -> Vec<(String, String)> {
    pairs_of(query).into_iter().filter(|(_, value)| !value.trim().is_empty()).collect()
}

fn query_of(pairs: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| format!("{}={}", encoded(name), encoded(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The parameters without the page token, for links to other pages.
fn without_page(pairs: &[(String, String)]) -> Vec<(String, String)> {
    pairs.iter().filter(|(name, _)| name != "page_token").cloned().collect()
}

/// `GET /deadLetters`: the groups, by their latest failure, newest first.
pub(super) async fn groups(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let mut pairs = filled(query.as_deref());
    let state =
        pairs.iter().find(|(name, _)| name == "state").map_or("unresolved", |(_, state)| state).to_owned();
    pairs.retain(|(name, value)| name != "state" || !matches!(&**value, "unresolved" | "all"));
    if state == "unresolved" {
        pairs.push(("state".into(), "open,acknowledged".into()));
    }
    let path = format!("/api/v1/bridge/deadLetterGroups?{}", query_of(&pairs));
    let (groups, wrong) = dashboard.filtered(&session, &path).await?;
    let services = dashboard.get_if(&session, "/api/v1/registry/services").await;
    let operations = dashboard.get_if(&session, "/api/v1/ops/operations?page_size=5").await;
    let service = pairs.iter().find(|(name, _)| name == "service").map(|(_, service)| service.clone());
    let more = format!("/deadLetters?{}", query_of(&without_page(&pairs)));
    let groups = view(&groups);
    let what = context! { groups, wrong, services, operations, state, service, more };
    dashboard.page(&session, "groups.html", what).await
}

/// `GET /deadLetters/groups`: the target of links in alerts, with the service of the alert.
pub(super) async fn moved(RawQuery(query): RawQuery) -> Redirect {
    Redirect::to(&query.map_or_else(|| "/deadLetters".into(), |query| format!("/deadLetters?{query}")))
}

/// `GET /deadLetters/groups/{group}`: a group with a sample and its actions.
pub(super) async fn group(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let name = encoded(&name);
    let group = dashboard.get_json(&session, &format!("/api/v1/bridge/deadLetterGroups/{name}")).await?;
    let letters = format!("/api/v1/bridge/deadLetters?group={name}&page_size=20");
    let letters = dashboard.get(&session, &letters).await?;
    let sample = match group["sample"].as_str() {
        Some(id) => dashboard.get_if(&session, &format!("/api/v1/bridge/deadLetters/{}", encoded(id))).await,
        None => None,
    };
    let operations = dashboard.get_if(&session, "/api/v1/ops/operations?page_size=20").await;
    let group = view(&group);
    dashboard.page(&session, "group.html", context! { group, letters, sample, operations }).await
}

/// `GET /deadLetters/list`: dead letters by any filter, with actions on some or all of them.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let pairs = filled(query.as_deref());
    let path = format!("/api/v1/bridge/deadLetters?{}", query_of(&pairs));
    let (letters, wrong) = dashboard.filtered(&session, &path).await?;
    let services = dashboard.get_if(&session, "/api/v1/registry/services").await;
    let kept = without_page(&pairs);
    // A filter that can't be read is none, and the API refuses an action without a filter.
    let filter = read::<DeadLetterQuery>(Some(&query_of(&kept))).ok();
    let filter = filter.map(|query| DeadLetterQuery { page: PageQuery::default(), ..query });
    let filter = serde_json::to_string(&filter).unwrap_or_default();
    let values = minijinja::Value::from_pairs(kept.iter().cloned());
    let more = format!("/deadLetters/list?{}", query_of(&kept));
    let query = query_of(&kept);
    let (letters, filtered) = (view(&letters), !kept.is_empty());
    let what = context! { letters, wrong, services, values, filter, more, query, filtered };
    dashboard.page(&session, "letters.html", what).await
}

/// `GET /deadLetters/export`: all matching dead letters as a file.
pub(super) async fn export(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let pairs = without_page(&filled(query.as_deref()));
    let path = format!("/api/v1/bridge/deadLetters:export?{}", query_of(&pairs));
    let mut response = dashboard.pass(&session, &path).await?;
    let name = HeaderValue::from_static("attachment; filename=\"dead-letters.jsonl\"");
    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// `GET /deadLetters/{id}`: a dead letter with its evidence.
pub(super) async fn letter(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> PageResult {
    let letter =
        dashboard.get_json(&session, &format!("/api/v1/bridge/deadLetters/{}", encoded(&id))).await?;
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let (raw, data) = (pretty(&letter["rawEvent"]), pretty(&letter["rawEvent"]["data"]));
    let request = pretty(&letter["request"]["body"]);
    let letter = view(&letter);
    dashboard.page(&session, "letter.html", context! { letter, raw, data, request }).await
}

/// `GET /operations`: bulk operations, newest first.
pub(super) async fn operations(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let path = format!("/api/v1/ops/operations?{}", query_of(&filled(query.as_deref())));
    let (operations, wrong) = dashboard.filtered(&session, &path).await?;
    let operations = view(&operations);
    dashboard.page(&session, "operations.html", context! { operations, wrong, more => "/operations" }).await
}

/// The page `GET /operations/{id}`.
pub(super) async fn operation(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> PageResult {
    let operation = dashboard.get(&session, &format!("/api/v1/ops/operations/{}", encoded(&id))).await?;
    let failed = match operation.get_attr("failedDelivery").ok().and_then(|id| id.as_str().map(encoded)) {
        Some(id) => dashboard.get_if(&session, &format!("/api/v1/bridge/deliveries/{id}")).await,
        None => None,
    };
    dashboard.page(&session, "operation.html", context! { operation, failed }).await
}
