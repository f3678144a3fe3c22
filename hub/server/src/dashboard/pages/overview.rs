//! What is broken, since when, what it costs, and what to do about it.

use minijinja::context;

use crate::dashboard::ask::view;
use crate::dashboard::context::{PageContext, PageQuery};
use crate::dashboard::{PageResult, charts};

/// The maximum number of services with a tile; those that need a look come first, and all are on the page of services.
const TILES: usize = 12;

pub(super) async fn page(page: PageContext) -> PageResult {
    let minutes = span(&page.query);
    let overview = page.get("/api/v1/ops/overview").await?;
    let services = page.get(&format!("/api/v1/ops/services?sort=trouble&page_size={TILES}")).await?;
    // A key for some services sees no history of all.
    let history = page.get(&format!("/api/v1/ops/history?minutes={minutes}")).await.ok();
    let lines = history.as_ref().map(charts::lines);
    let rules = page.get("/api/v1/registry/rules").await?.as_array().map_or(0, Vec::len);
    let newest = page.get("/api/v1/bridge/events?page_size=1").await.ok();
    let events = newest.is_none_or(|page| page["events"].as_array().is_some_and(|all| !all.is_empty()));
    let begins = overview["services"]["total"] == 0 || rules == 0 || !events;
    // For the commands that are shown.
    let service = services["services"][0]["name"].as_str().map(ToOwned::to_owned);
    let (overview, services) = (view(&overview), view(&services));
    let what = context! { overview, services, lines, minutes, rules, events, begins, service };
    page.page("overview.html", what).await
}

/// Five minutes, unless somebody wants to see the hour.
pub(super) fn span(query: &PageQuery) -> &'static str {
    if query.get("minutes") == Some("60") { "60" } else { "5" }
}
