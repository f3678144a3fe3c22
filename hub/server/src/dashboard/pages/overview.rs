//! What is broken, since when, what it costs, and what to do about it.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use minijinja::context;

use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::session::Session;
use crate::dashboard::{Dashboard, PageResult, charts};

/// The maximum number of services with a tile; those that need a look come first, and all are on the page of services.
const TILES: usize = 12;

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let minutes = span(&PageQuery::of(query.as_deref()));
    let overview = dashboard.get_json(&session, "/api/v1/ops/overview").await?;
    let tiles = format!("/api/v1/ops/services?sort=trouble&page_size={TILES}");
    let services = dashboard.get_json(&session, &tiles).await?;
    // A key for some services sees no history of all.
    let history = dashboard.get_json(&session, &format!("/api/v1/ops/history?minutes={minutes}")).await.ok();
    let lines = history.as_ref().map(charts::lines);
    let rules = dashboard.get_json(&session, "/api/v1/registry/rules").await?;
    let rules = rules.as_array().map_or(0, Vec::len);
    let newest = dashboard.get_json(&session, "/api/v1/bridge/events?page_size=1").await.ok();
    let events = newest.is_none_or(|page| page["events"].as_array().is_some_and(|all| !all.is_empty()));
    let begins = overview["services"]["total"] == 0 || rules == 0 || !events;
    // For the commands that are shown.
    let service = services["services"][0]["name"].as_str().map(ToOwned::to_owned);
    let (overview, services) = (view(&overview), view(&services));
    dashboard
        .page(
            &session,
            "overview.html",
            context! { overview, services, lines, minutes, rules, events, begins, service },
        )
        .await
}

/// Five minutes, unless somebody wants to see the hour.
pub(super) fn span(asked: &PageQuery) -> &'static str {
    if asked.get("minutes") == Some("60") { "60" } else { "5" }
}
