//! Sources of webhooks: who may send events without a key, and how they show who they are.

use std::sync::Arc;

use axum::extract::{Path, State};
use minijinja::context;
use seawall_api::SourceSpec;
use serde_json::json;

use crate::dashboard::ask::view;
use crate::dashboard::form;
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
    // A new source is enabled.
    let fields = form::fields::<SourceSpec>(&json!({"enabled": true}));
    let what = context! { is_new => true, source => context! { name => "" }, fields };
    dashboard.page(&session, "source_form.html", what)
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/registry/sources/{}", encoded(&name));
    let source = dashboard.get_json(&session, &path).await?;
    let fields = form::fields::<SourceSpec>(&source);
    dashboard.page(
        &session,
        "source_form.html",
        context! { is_new => false, source => view(&source), fields },
    )
}
