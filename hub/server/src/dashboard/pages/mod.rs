//! The pages, one file for each subject.

mod demo;
mod overview;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use super::Dashboard;

/// Every page. What is at a path is shown for whoever is logged in, and nobody else.
pub(super) fn router() -> Router<Arc<Dashboard>> {
    Router::new().route("/", get(overview::page)).route("/demo", get(demo::page))
}
