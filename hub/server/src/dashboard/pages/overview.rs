//! What is broken, since when, and what to do about it.

use std::sync::Arc;

use axum::extract::State;
use minijinja::context;

use crate::dashboard::session::Session;
use crate::dashboard::{Dashboard, Shown};

pub(super) async fn page(State(dashboard): State<Arc<Dashboard>>, session: Session) -> Shown {
    let services = dashboard.get(&session, "/api/v1/registry/services").await?;
    let groups = dashboard.get_if(&session, "/api/v1/bridge/deadLetterGroups?state=open&page_size=10").await;
    dashboard.page(&session, "overview.html", context! { services, groups })
}
