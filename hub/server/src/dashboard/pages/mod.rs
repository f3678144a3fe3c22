//! The pages, one file for each subject.

mod alerts;
mod dead_letters;
mod deliveries;
mod demo;
mod events;
mod overview;
mod policy;
mod rule_form;
mod rules;
mod services;
mod settings;
mod sources;

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod ops_tests;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use super::Dashboard;

/// Every page. What is at a path is shown for whoever is logged in, and nobody else. A name can't begin with `_`, so what is new
/// is in nobody's way.
pub(super) fn router() -> Router<Arc<Dashboard>> {
    Router::new()
        .route("/", get(overview::page))
        .route("/deadLetters", get(dead_letters::groups))
        .route("/deadLetters/groups", get(dead_letters::moved))
        .route("/deadLetters/groups/{group}", get(dead_letters::group))
        .route("/deadLetters/list", get(dead_letters::list))
        .route("/deadLetters/export", get(dead_letters::export))
        .route("/deadLetters/{id}", get(dead_letters::letter))
        .route("/operations", get(dead_letters::operations))
        .route("/operations/{id}", get(dead_letters::operation))
        .route("/services", get(services::list))
        .route("/services/_new", get(services::fresh))
        .route("/services/{name}", get(services::page))
        .route("/services/{name}/edit", get(services::edit))
        .route("/rules", get(rules::list))
        .route("/rules/_new", get(rule_form::fresh))
        .route("/rules/{name}", get(rules::page))
        .route("/rules/{name}/edit", get(rule_form::edit))
        .route("/rules/{name}/try", get(rules::attempt))
        .route("/events", get(events::list))
        .route("/events/{id}", get(events::page))
        .route("/deliveries", get(deliveries::list))
        .route("/deliveries/{id}", get(deliveries::page))
        .route("/sources", get(sources::list))
        .route("/sources/_new", get(sources::fresh))
        .route("/sources/{name}", get(sources::page))
        .route("/sources/{name}/edit", get(sources::edit))
        .route("/alerts", get(alerts::list))
        .route("/alerts/{id}", get(alerts::page))
        .route("/alerts/rules/_new", get(alerts::fresh_rule))
        .route("/alerts/rules/{name}", get(alerts::rule))
        .route("/alerts/channels/_new", get(alerts::fresh_channel))
        .route("/alerts/channels/{name}", get(alerts::channel))
        .route("/settings", get(settings::page))
        .route("/settings/metrics", get(settings::metrics))
        .route("/keys", get(settings::keys))
        .route("/audit", get(settings::audit))
        .route("/demo", get(demo::page))
}
