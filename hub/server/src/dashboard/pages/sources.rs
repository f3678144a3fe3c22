//! Sources of webhooks: who may send events without a key, and how they show who they are.

use std::sync::Arc;

use axum::extract::{Path, State};
use minijinja::context;
use serde_json::{Value, json};

use crate::dashboard::ask::view;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};

pub(super) async fn list(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let sources = dashboard.get(&session, "/api/v1/registry/sources").await?;
    dashboard.page(&session, "sources.html", context! { sources })
}

pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let at = encoded(&name);
    let source = dashboard.get(&session, &format!("/api/v1/registry/sources/{at}")).await?;
    let events = dashboard.get_if(&session, &format!("/api/v1/bridge/events?source={at}&page_size=10")).await;
    dashboard.page(&session, "source.html", context! { source, events })
}

pub(super) async fn fresh(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let source =
        json!({"name": "", "eventType": "", "eventId": "", "enabled": true, "version": 0, "scheme": ""});
    let what = context! { is_new => true, source => view(&source) };
    dashboard.page(&session, "source_form.html", what)
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/registry/sources/{}", encoded(&name));
    let mut source = dashboard.get_json(&session, &path).await?;
    source["scheme"] = json!(source["verify"]["type"].as_str().unwrap_or_default());
    if source["eventId"].is_null() {
        source["eventId"] = Value::from("");
    }
    dashboard.page(&session, "source_form.html", context! { is_new => false, source => view(&source) })
}
