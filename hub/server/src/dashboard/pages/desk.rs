//! The dead letter desk: groups, dead letters, and work on many.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Redirect;
use minijinja::context;

use crate::dashboard::ask::view;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};
use crate::http::query::pairs_of;

/// What was asked for, without what is empty: the forms send every field. The API says which of it there is not.
fn asked(query: Option<&str>) -> Vec<(String, String)> {
    pairs_of(query).into_iter().filter(|(_, value)| !value.trim().is_empty()).collect()
}

fn written(pairs: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| format!("{}={}", encoded(name), encoded(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The page without its number, for links to the next one.
fn without_page(pairs: &[(String, String)]) -> Vec<(String, String)> {
    pairs.iter().filter(|(name, _)| name != "page_token").cloned().collect()
}

/// `GET /deadLetters`: groups, those that failed last first.
pub(super) async fn groups(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let mut pairs = asked(query.as_deref());
    let state =
        pairs.iter().find(|(name, _)| name == "state").map_or("unresolved", |(_, state)| state).to_owned();
    pairs.retain(|(name, value)| name != "state" || !matches!(&**value, "unresolved" | "all"));
    if state == "unresolved" {
        pairs.push(("state".into(), "open,acknowledged".into()));
    }
    let path = format!("/api/v1/bridge/deadLetterGroups?{}", written(&pairs));
    let (groups, wrong) = dashboard.filtered(&session, &path).await?;
    let services = dashboard.get_if(&session, "/api/v1/registry/services").await;
    let operations = dashboard.get_if(&session, "/api/v1/ops/operations?page_size=5").await;
    let service = pairs.iter().find(|(name, _)| name == "service").map(|(_, service)| service.clone());
    let more = format!("/deadLetters?{}", written(&without_page(&pairs)));
    let groups = view(&groups);
    let what = context! { groups, wrong, services, operations, state, service, more };
    dashboard.page(&session, "groups.html", what).await
}

/// `GET /deadLetters/groups`: where alerts lead, with the service that they are about.
pub(super) async fn moved(RawQuery(query): RawQuery) -> Redirect {
    Redirect::to(&query.map_or_else(|| "/deadLetters".into(), |query| format!("/deadLetters?{query}")))
}

/// `GET /deadLetters/groups/{group}`: what they have in common, one of them in full, and what can be done.
pub(super) async fn group(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let name = encoded(&name);
    let group = dashboard.get_json(&session, &format!("/api/v1/bridge/deadLetterGroups/{name}")).await?;
    let letters = format!("/api/v1/bridge/deadLetters?group={name}&page_size=20");
    let letters = dashboard.get(&session, &letters).await?;
    let sample = match group["sample"]["id"].as_str().or_else(|| group["sample"].as_str()) {
        Some(id) => dashboard.get_if(&session, &format!("/api/v1/bridge/deadLetters/{}", encoded(id))).await,
        None => None,
    };
    let operations = dashboard.get_if(&session, "/api/v1/ops/operations?page_size=20").await;
    let group = view(&group);
    dashboard.page(&session, "group.html", context! { group, letters, sample, operations }).await
}

/// `GET /deadLetters/list`: dead letters by any filter, and what can be done to some or all of them.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let pairs = asked(query.as_deref());
    let path = format!("/api/v1/bridge/deadLetters?{}", written(&pairs));
    let (letters, wrong) = dashboard.filtered(&session, &path).await?;
    let services = dashboard.get_if(&session, "/api/v1/registry/services").await;
    let kept = without_page(&pairs);
    let filter: serde_json::Map<String, serde_json::Value> = kept
        .iter()
        .map(|(name, value)| {
            // A number and a switch are no texts in a body.
            let is_literal = matches!(&**name, "status" | "replayed");
            let literal = is_literal.then(|| serde_json::from_str(value).ok()).flatten();
            (name.clone(), literal.unwrap_or_else(|| value.clone().into()))
        })
        .collect();
    let values = minijinja::Value::from_pairs(kept.iter().cloned());
    let more = format!("/deadLetters/list?{}", written(&kept));
    let filter = serde_json::Value::from(filter).to_string();
    let query = written(&kept);
    let (letters, filtered) = (view(&letters), !kept.is_empty());
    let what = context! { letters, wrong, services, values, filter, more, query, filtered };
    dashboard.page(&session, "letters.html", what).await
}

/// `GET /deadLetters/export`: all that match, as a file.
pub(super) async fn export(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let pairs = without_page(&asked(query.as_deref()));
    let path = format!("/api/v1/bridge/deadLetters:export?{}", written(&pairs));
    let mut response = dashboard.pass(&session, &path).await?;
    let name = HeaderValue::from_static("attachment; filename=\"dead-letters.jsonl\"");
    response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// `GET /deadLetters/{id}`: everything that is known of one.
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

/// `GET /operations`: work on many dead letters.
pub(super) async fn operations(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let path = format!("/api/v1/ops/operations?{}", written(&asked(query.as_deref())));
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
