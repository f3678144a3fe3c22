//! Sources of webhooks: who may send events without a key, and how they show who they are.

use std::sync::Arc;

use axum::extract::{Path, State};
use minijinja::context;
use seawall_api::SourceSpec;
use serde_json::Value;

use crate::dashboard::form::SOURCE;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};

pub(super) async fn list(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let sources = dashboard.get(&session, "/api/v1/registry/sources").await?;
    dashboard.page(&session, "sources.html", context! { sources }).await
}

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let at = encoded(&name);
    let source = dashboard.get(&session, &format!("/api/v1/registry/sources/{at}")).await?;
    let events = dashboard.get_if(&session, &format!("/api/v1/bridge/events?source={at}&page_size=10")).await;
    dashboard.page(&session, "source.html", context! { source, events }).await
}

/// The pages above a form.
const ABOVE: [(&str, &str); 2] = [("/events", "Events"), ("/sources", "Sources")];

pub(super) async fn fresh(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let form = SOURCE.create::<SourceSpec>(&Value::Null, &[]);
    dashboard.form_page(&session, &form, &ABOVE, ()).await
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/registry/sources/{}", encoded(&name));
    let source = dashboard.get_json(&session, &path).await?;
    dashboard.form_page(&session, &SOURCE.change::<SourceSpec>(&source, &[]), &ABOVE, ()).await
}
