//! Events: what came in, and what it led to.

use minijinja::context;

use crate::dashboard::PageResult;
use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::show::encoded;

pub(super) async fn list(page: PageContext) -> PageResult {
    let filters = ["type", "source", "unmatched"];
    page.list("events.html", "/events", "/api/v1/bridge/events", &filters).await
}

pub(super) async fn page(page: PageContext) -> PageResult {
    let event = page.get(&page.at("/api/v1/bridge/events")).await?;
    let deliveries = format!("/api/v1/bridge/deliveries?event={}&page_size=100", encoded(&page.name));
    let deliveries = page.view(&deliveries).await?;
    // The middle of `00-<trace>-<span>-01`.
    let trace = event["trace"].as_str().and_then(|trace| trace.split('-').nth(1)).map(ToOwned::to_owned);
    page.page("event.html", context! { event => view(&event), deliveries, trace }).await
}
