//! Sources of webhooks: who may send events without a key, and how their webhooks are verified.

use minijinja::context;
use seawall_api::SourceSpec;
use serde_json::Value;

use crate::dashboard::PageResult;
use crate::dashboard::context::PageContext;
use crate::dashboard::form::SOURCE;
use crate::dashboard::show::encoded;

const API: &str = "/api/v1/registry/sources";
/// The pages above a form.
const ABOVE: [(&str, &str); 2] = [("/events", "Events"), ("/sources", "Sources")];

pub(super) async fn list(page: PageContext) -> PageResult {
    page.page("sources.html", context! { sources => page.view(API).await? }).await
}

pub(super) async fn page(page: PageContext) -> PageResult {
    let source = page.view(&page.at(API)).await?;
    let events = format!("/api/v1/bridge/events?source={}&page_size=10", encoded(&page.name));
    let events = page.view_if(&events).await;
    page.page("source.html", context! { source, events }).await
}

pub(super) async fn fresh(page: PageContext) -> PageResult {
    page.form(&SOURCE.create::<SourceSpec>(&Value::Null, &[]), &ABOVE, ()).await
}

pub(super) async fn edit(page: PageContext) -> PageResult {
    let source = page.get(&page.at(API)).await?;
    page.form(&SOURCE.change::<SourceSpec>(&source, &[]), &ABOVE, ()).await
}
