//! The sample services of a demo, with their switches, and what to try with them.

use std::sync::Arc;

use axum::extract::State;
use minijinja::context;

use crate::dashboard::session::Session;
use crate::dashboard::{Dashboard, Shown};

/// A hub that is none of a demo has no such page, because its API has no such routes.
pub(super) async fn page(State(dashboard): State<Arc<Dashboard>>, session: Session) -> Shown {
    let upstreams = dashboard.get(&session, "/api/v1/demo/upstreams").await?;
    let story = dashboard.get(&session, "/api/v1/demo/story").await?;
    dashboard.page(&session, "demo.html", context! { upstreams, story })
}
