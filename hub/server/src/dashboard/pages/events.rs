//! Events: what came in, and what it led to.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;

use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};

const FILTERS: &[&str] = &["type", "source", "unmatched"];

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = PageQuery::of(query.as_deref());
    let path = asked.over("/api/v1/bridge/events", &[FILTERS, &["page_token"]].concat());
    let (page, wrong) = dashboard.filtered(&session, &path).await?;
    let said = |name: &str| asked.get(name).unwrap_or_default().to_owned();
    let what = context! {
        page => view(&page), wrong, kind => said("type"), source => said("source"), unmatched => said("unmatched"),
        filtered => FILTERS.iter().any(|name| asked.get(name).is_some()),
        further => asked.get("page_token").is_some(), base => asked.over("/events", FILTERS),
    };
    dashboard.page(&session, "events.html", what).await
}

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> PageResult {
    let at = encoded(&id);
    let event = dashboard.get_json(&session, &format!("/api/v1/bridge/events/{at}")).await?;
    let path = format!("/api/v1/bridge/deliveries?event={at}&page_size=100");
    let deliveries = dashboard.get(&session, &path).await?;
    // The middle of `00-<trace>-<span>-01`.
    let trace = event["trace"].as_str().and_then(|trace| trace.split('-').nth(1)).map(ToOwned::to_owned);
    dashboard.page(&session, "event.html", context! { event => view(&event), deliveries, trace }).await
}
