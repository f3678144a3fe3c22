//! A rule, to be written while its request is seen beside it.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::{Value as View, context};
use seawall_api::RuleSpec;
use serde_json::{Value, json};

use crate::dashboard::asked::PageQuery;
use crate::dashboard::form::{RULE, names_of};
use crate::dashboard::guard::leads_here;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageError, PageResult};

/// The number of events that are offered for a test.
const OFFERED: usize = 30;
/// The event for a test while there is no other.
const SAMPLE: &str = r#"{
  "id": "sample-1",
  "type": "order.created",
  "data": {"id": "A-7", "total": 120.5, "customer": {"email": "ada@example.com"}}
}"#;

pub(super) async fn fresh(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = PageQuery::of(query.as_deref());
    let rule = json!({"eventType": asked.get("type"), "service": asked.get("service")});
    shown(&dashboard, &session, &rule, true, &asked).await
}

pub(super) async fn edit(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> PageResult {
    let rule = dashboard.get_json(&session, &format!("/api/v1/registry/rules/{}", encoded(&name))).await?;
    shown(&dashboard, &session, &rule, false, &PageQuery::of(query.as_deref())).await
}

async fn shown(
    dashboard: &Dashboard,
    session: &Session,
    rule: &Value,
    is_new: bool,
    asked: &PageQuery,
) -> PageResult {
    let services = names_of(&dashboard.get_json(session, "/api/v1/registry/services").await?);
    let (has_services, names) = (!services.is_empty(), [("services", services)]);
    let kind = rule["eventType"].as_str().unwrap_or_default();
    let events =
        offered(dashboard, session, if is_new && asked.get("event").is_none() { "" } else { kind }).await?;
    let mut form = match is_new {
        true => RULE.create::<RuleSpec>(rule, &names),
        false => RULE.change::<RuleSpec>(rule, &names),
    };
    if !is_new {
        form.button = "Save as new version".into();
        // Whoever came from a group of dead letters goes back there, to replay it.
        if let Some(back) = asked.get("back").filter(|back| leads_here(back)) {
            (form.to, form.cancel) = (back.to_owned(), back.to_owned());
        }
    }
    let what = context! {
        form => form.view(), has_services, events, chosen => asked.get("event").unwrap_or_default(), sample => SAMPLE,
    };
    dashboard.page(session, "rule_form.html", what).await
}

/// The events of this type that came last, or of any.
async fn offered(dashboard: &Dashboard, session: &Session, kind: &str) -> Result<Option<View>, PageError> {
    let mut path = format!("/api/v1/bridge/events?page_size={OFFERED}");
    if !kind.is_empty() {
        path.push_str(&format!("&type={}", encoded(kind)));
    }
    Ok(dashboard.get_if(session, &path).await)
}
