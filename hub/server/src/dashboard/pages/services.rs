//! Services: the list, and one of them with all that it goes through.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;
use serde_json::Value;

use super::overview::span;
use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult, charts};

const FILTERS: &[&str] = &["search", "circuit", "sort"];

pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = PageQuery::of(query.as_deref());
    let path = asked.over("/api/v1/ops/services?page_size=50", &[FILTERS, &["page_token"]].concat());
    let (page, wrong) = dashboard.filtered(&session, &path).await?;
    let what = context! {
        page => view(&page), wrong, search => asked.get("search").unwrap_or_default(),
        circuit => asked.get("circuit").unwrap_or_default(), sort => asked.get("sort").unwrap_or_default(),
        filtered => asked.get("search").is_some() || asked.get("circuit").is_some(),
        further => asked.get("page_token").is_some(), base => asked.over("/services", FILTERS),
    };
    dashboard.page(&session, "services.html", what).await
}

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> PageResult {
    let minutes = span(&PageQuery::of(query.as_deref()));
    let at = encoded(&name);
    let service = dashboard.get_json(&session, &format!("/api/v1/registry/services/{at}")).await?;
    let circuit = dashboard.get(&session, &format!("/api/v1/registry/services/{at}/circuit")).await?;
    let standing = dashboard.get_json(&session, &format!("/api/v1/ops/services?service={at}")).await?;
    let history = format!("/api/v1/ops/history?service={at}&minutes={minutes}");
    let lines = charts::lines(&dashboard.get_json(&session, &history).await?);
    let recent = format!("/api/v1/bridge/deliveries?service={at}&page_size=10");
    let recent = dashboard.get(&session, &recent).await?;
    let rules = dashboard.get_json(&session, "/api/v1/registry/rules").await?;
    let is_own = |rule: &&Value| rule["service"].as_str() == Some(&name);
    let rules: Vec<Value> = rules.as_array().into_iter().flatten().filter(is_own).cloned().collect();
    let what = context! {
        service => view(&service), circuit, standing => view(&standing["services"][0]), lines, minutes, recent,
        rules => view(&Value::Array(rules)),
    };
    dashboard.page(&session, "service.html", what).await
}
