//! A service, to be filled in.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use seawall_api::ServiceSpec;
use serde_json::{Value, json};

use super::policy;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::form::{Form, SERVICE};
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
    let asked = PageQuery::of(query.as_deref());
    let policy = policy::with_preset(usual(), asked.get("preset").unwrap_or_default());
    shown(&dashboard, &session, &SERVICE.create::<ServiceSpec>(&Value::Null, &[]), &policy).await
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/registry/services/{}", encoded(&name));
    let service = dashboard.get_json(&session, &path).await?;
    shown(&dashboard, &session, &SERVICE.change::<ServiceSpec>(&service, &[]), &service["policy"]).await
}

async fn shown(dashboard: &Dashboard, session: &Session, form: &Form, policy: &Value) -> PageResult {
    dashboard.form_page(session, form, &[("/services", "Services")], policy::form(policy)).await
}
