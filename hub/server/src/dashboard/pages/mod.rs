//! The pages, one file for each subject.

mod desk;
mod overview;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use super::Dashboard;

/// Every page. What is at a path is shown for whoever is logged in, and nobody else.
pub(super) fn router() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/", get(overview::page))
        .route("/deadLetters", get(desk::groups))
        .route("/deadLetters/groups/{group}", get(desk::group))
        .route("/deadLetters/list", get(desk::list))
        .route("/deadLetters/{id}", get(desk::letter))
        .route("/operations", get(desk::operations))
        .route("/operations/{id}", get(desk::operation))
}
