//! Deliveries: where each stands, and all that was tried.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;

use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};

const FILTERS: &[&str] = &["service", "rule", "state", "event"];

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = PageQuery::of(query.as_deref());
    let path = asked.over("/api/v1/bridge/deliveries", &[FILTERS, &["page_token"]].concat());
    let (page, wrong) = dashboard.filtered(&session, &path).await?;
    let said = |name: &str| asked.get(name).unwrap_or_default().to_owned();
    let what = context! {
        page => view(&page), wrong, service => said("service"), rule => said("rule"), state => said("state"),
        event => said("event"), filtered => FILTERS.iter().any(|name| asked.get(name).is_some()),
        further => asked.get("page_token").is_some(), base => asked.over("/deliveries", FILTERS),
    };
    dashboard.page(&session, "deliveries.html", what).await
}

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> PageResult {
    let delivery =
        dashboard.get_json(&session, &format!("/api/v1/bridge/deliveries/{}", encoded(&id))).await?;
    let service = encoded(delivery["service"].as_str().unwrap_or_default());
    let service = dashboard.get_if(&session, &format!("/api/v1/registry/services/{service}")).await;
    dashboard.page(&session, "delivery.html", context! { delivery => view(&delivery), service }).await
}
