//! A rule, to be written while its request is seen beside it.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::{Value as View, context};
use serde_json::{Value, json};

use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::form::lines;
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
    let rule = json!({
        "name": "", "eventType": asked.get("type").unwrap_or_default(), "service": asked.get("service").unwrap_or_default(),
        "method": "POST", "path": "/", "headers": {}, "filter": null, "body": null, "delivery": {}, "ordering": null,
        "enabled": true, "version": 0,
    });
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
    let services = dashboard.get(session, "/api/v1/registry/services").await?;
    let kind = rule["eventType"].as_str().unwrap_or_default();
    let events =
        offered(dashboard, session, if is_new && asked.get("event").is_none() { "" } else { kind }).await?;
    let mut form = rule.clone();
    form["headers"] = json!(lines(&rule["headers"]));
    form["body"] = json!(if rule["body"].is_null() { String::new() } else { format!("{:#}", rule["body"]) });
    form["filter"] = json!(rule["filter"].as_str().unwrap_or_default());
    let delivery = |name: &str| match &rule["delivery"][name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        number => number.to_string(),
    };
    let ordering = |name: &str| rule["ordering"][name].as_str().unwrap_or_default().to_owned();
    // Whoever came from a group of dead letters goes back there, to replay it.
    let at = format!("/rules/{}", encoded(rule["name"].as_str().unwrap_or_default()));
    let back = asked.get("back").filter(|back| leads_here(back)).map_or(at, ToOwned::to_owned);
    let what = context! {
        back, is_new, rule => view(&form), services, events, chosen => asked.get("event").unwrap_or_default(), sample => SAMPLE,
        attempts => delivery("maxAttempts"), age => delivery("maxAge"), base => delivery("base"), cap => delivery("cap"),
        count => delivery("count"), order => ordering("key"), hold => ordering("onDeadLetter"),
    };
    dashboard.page(session, "rule_form.html", what)
}

/// The events of this type that came last, or of any.
async fn offered(dashboard: &Dashboard, session: &Session, kind: &str) -> Result<Option<View>, PageError> {
    let mut path = format!("/api/v1/bridge/events?page_size={OFFERED}");
    if !kind.is_empty() {
        path.push_str(&format!("&type={}", encoded(kind)));
    }
    Ok(dashboard.get_if(session, &path).await)
}
