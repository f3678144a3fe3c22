//! Deliveries: where each stands, and all that was tried.

use minijinja::context;

use crate::dashboard::PageResult;
use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::show::encoded;

pub(super) async fn list(page: PageContext) -> PageResult {
    let filters = ["service", "rule", "state", "event"];
    page.list("deliveries.html", "/deliveries", "/api/v1/bridge/deliveries", &filters).await
}

pub(super) async fn page(page: PageContext) -> PageResult {
    let delivery = page.get(&page.at("/api/v1/bridge/deliveries")).await?;
    let service = encoded(delivery["service"].as_str().unwrap_or_default());
    let service = page.view_if(&format!("/api/v1/registry/services/{service}")).await;
    page.page("delivery.html", context! { delivery => view(&delivery), service }).await
}
