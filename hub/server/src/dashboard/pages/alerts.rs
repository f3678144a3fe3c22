//! Alerts: what is wrong and who was told, by which rules, and over which channels.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;
use serde_json::{Value, json};

use crate::dashboard::ask::view;
use crate::dashboard::asked::Asked;
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, Shown};

/// `GET /alerts`: what is open first, then what is over; the rules and the channels below.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> Shown {
    let asked = Asked::of(query.as_deref());
    let token = asked.get("open_token").map(|token| format!("&page_token={}", encoded(token)));
    let open = format!("/api/v1/ops/alerts?state=open&page_size=100{}", token.unwrap_or_default());
    let (open, wrong) = dashboard.filtered(&session, &open).await?;
    let path = asked.over("/api/v1/ops/alerts?state=resolved&page_size=20", &["page_token"]);
    let (resolved, also_wrong) = dashboard.filtered(&session, &path).await?;
    let rules = dashboard.get(&session, "/api/v1/ops/alertRules").await?;
    let channels = dashboard.get(&session, "/api/v1/ops/alertChannels").await?;
    let what = context! {
        limited => session.key.services.is_some(), open => view(&open), resolved => view(&resolved), wrong => wrong.or(also_wrong), rules, channels,
        further => asked.get("page_token").is_some() || asked.get("open_token").is_some(),
    };
    dashboard.page(&session, "alerts.html", what)
}

/// `GET /alerts/{id}`: an incident, with who was told.
pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> Shown {
    let alert = dashboard.get(&session, &format!("/api/v1/ops/alerts/{}", encoded(&id))).await?;
    dashboard.page(&session, "alert.html", context! { alert })
}

/// `GET /alerts/rules/{name}`: what a rule says, and the form that changes it.
pub(super) async fn rule(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> Shown {
    let path = format!("/api/v1/ops/alertRules/{}", encoded(&name));
    let mut rule = dashboard.get_json(&session, &path).await?;
    rule["servicesText"] = json!(joined(&rule["services"]));
    let channels = dashboard.get(&session, "/api/v1/ops/alertChannels").await?;
    dashboard.page(&session, "alert_rule.html", context! { is_new => false, rule => view(&rule), channels })
}

/// `GET /alerts/rules/_new`.
pub(super) async fn fresh_rule(State(dashboard): State<Arc<Dashboard>>, session: Session) -> Shown {
    let rule =
        json!({"name": "", "kind": "oldestDue", "enabled": true, "severity": "warning", "channels": null});
    let channels = dashboard.get(&session, "/api/v1/ops/alertChannels").await?;
    dashboard.page(&session, "alert_rule.html", context! { is_new => true, rule => view(&rule), channels })
}

/// `GET /alerts/channels/{name}`: where it leads, without its secrets; a test, and the form that changes it.
pub(super) async fn channel(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> Shown {
    let path = format!("/api/v1/ops/alertChannels/{}", encoded(&name));
    let mut channel = dashboard.get_json(&session, &path).await?;
    channel["toText"] = json!(joined(&channel["to"]));
    let what = context! { is_new => false, channel => view(&channel) };
    dashboard.page(&session, "alert_channel.html", what)
}

/// `GET /alerts/channels/_new`.
pub(super) async fn fresh_channel(State(dashboard): State<Arc<Dashboard>>, session: Session) -> Shown {
    let channel = json!({"name": "", "type": "webhook"});
    let what = context! { is_new => true, channel => view(&channel) };
    dashboard.page(&session, "alert_channel.html", what)
}

/// As a field of a form has it.
fn joined(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}
