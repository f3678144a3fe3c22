//! A service, to be filled in.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;
use serde_json::{Value, json};

use super::policy;
use crate::dashboard::ask::view;
use crate::dashboard::asked::Asked;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageResult};

/// What a new one begins with: what the hub would take without a word about it.
fn usual() -> Value {
    json!({
        "attempt_timeout": "3s", "retry": {"max_attempts": 3},
        "breaker": {"consecutive_failures": 5, "cooldown": "30s"}, "bulkhead": {"max_calls": 20},
    })
}

pub(super) async fn fresh(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = Asked::of(query.as_deref());
    let service =
        context! { name => "", address => "", headers => "", paused => false, version => 0, auth => "" };
    let policy = policy::with_preset(usual(), asked.get("preset").unwrap_or_default());
    let what = context! { is_new => true, service, policy => policy::form(&policy) };
    dashboard.page(&session, "service_form.html", what)
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/registry/services/{}", encoded(&name));
    let service = dashboard.get_json(&session, &path).await?;
    let policy = policy::form(&service["policy"]);
    let mut shown = service.clone();
    shown["headers"] = json!(lines(&service["headers"]));
    shown["auth"] = json!(service["auth"]["type"].as_str().unwrap_or_default());
    dashboard.page(
        &session,
        "service_form.html",
        context! { is_new => false, service => view(&shown), policy },
    )
}

/// An object as lines of `name: value`.
pub(super) fn lines(object: &Value) -> String {
    let pairs = object.as_object().into_iter().flatten();
    let line = |(name, value): (&String, &Value)| format!("{name}: {}", value.as_str().unwrap_or_default());
    pairs.map(line).collect::<Vec<_>>().join("\n")
}
