//! Alerts: what is wrong and who was told, by which rules, and over which channels.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use minijinja::context;
use seawall_api::{AlertChannelSpec, AlertRuleSpec};
use serde_json::Value;

use crate::dashboard::ask::view;
use crate::dashboard::asked::PageQuery;
use crate::dashboard::form::{ALERT_CHANNEL, ALERT_RULE, names_of};
use crate::dashboard::session::Session;
use crate::dashboard::show::encoded;
use crate::dashboard::{Dashboard, PageError, PageResult};

/// `GET /alerts`: what is open first, then what is over; the rules and the channels below.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    RawQuery(query): RawQuery,
) -> PageResult {
    let asked = PageQuery::of(query.as_deref());
    let token = asked.get("open_token").map(|token| format!("&page_token={}", encoded(token)));
    let open = format!("/api/v1/ops/alerts?state=open&page_size=100{}", token.unwrap_or_default());
    let resolved = asked.over("/api/v1/ops/alerts?state=resolved&page_size=20", &["page_token"]);
    // With a state the page shows that list alone. What is no state, and what is no parameter, is for the API to say.
    let unknown = asked.besides(&["state", "page_token", "open_token"]);
    let ((open, wrong), (resolved, also_wrong)) = match asked.get("state") {
        None if unknown.is_none() => {
            (dashboard.filtered(&session, &open).await?, dashboard.filtered(&session, &resolved).await?)
        }
        Some("open") if unknown.is_none() => {
            (dashboard.filtered(&session, &open).await?, (Value::Null, None))
        }
        Some("resolved") if unknown.is_none() => {
            ((Value::Null, None), dashboard.filtered(&session, &resolved).await?)
        }
        state => {
            let state = state.map(|state| format!("state={}", encoded(state)));
            let said: Vec<String> = state.into_iter().chain(unknown).collect();
            let path = format!("/api/v1/ops/alerts?{}", said.join("&"));
            (dashboard.filtered(&session, &path).await?, (Value::Null, None))
        }
    };
    let rules = dashboard.get(&session, "/api/v1/ops/alertRules").await?;
    let channels = dashboard.get(&session, "/api/v1/ops/alertChannels").await?;
    let what = context! {
        state => asked.get("state"),
        limited => session.key.services.is_some(), open => view(&open), resolved => view(&resolved), wrong => wrong.or(also_wrong), rules, channels,
        further => asked.get("page_token").is_some() || asked.get("open_token").is_some(),
    };
    dashboard.page(&session, "alerts.html", what).await
}

/// `GET /alerts/{id}`: an incident, with who was told.
pub(super) async fn page(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(id): Path<String>,
) -> PageResult {
    let alert = dashboard.get(&session, &format!("/api/v1/ops/alerts/{}", encoded(&id))).await?;
    dashboard.page(&session, "alert.html", context! { alert }).await
}

/// `GET /alerts/rules/{name}`: what a rule says, and the form that changes it.
pub(super) async fn rule(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/ops/alertRules/{}", encoded(&name));
    let rule = dashboard.get_json(&session, &path).await?;
    let form = ALERT_RULE.change::<AlertRuleSpec>(&rule, &dashboard.channels(&session).await?);
    dashboard.page(&session, "alert_rule.html", context! { rule => view(&rule), form => form.view() }).await
}

/// The page `GET /alerts/rules/_new`.
pub(super) async fn fresh_rule(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let form = ALERT_RULE.create::<AlertRuleSpec>(&Value::Null, &dashboard.channels(&session).await?);
    dashboard.form_page(&session, &form, &[("/alerts", "Alerts"), ("/alerts#rules", "Rules")], ()).await
}

/// `GET /alerts/channels/{name}`: where it leads, without its secrets; a test, and the form that changes it.
pub(super) async fn channel(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    Path(name): Path<String>,
) -> PageResult {
    let path = format!("/api/v1/ops/alertChannels/{}", encoded(&name));
    let channel = dashboard.get_json(&session, &path).await?;
    // One that can't be decrypted is written whole.
    let mut form = match channel["type"].is_string() {
        true => ALERT_CHANNEL.change::<AlertChannelSpec>(&channel, &[]),
        false => ALERT_CHANNEL.replace::<AlertChannelSpec>(&channel, &[]),
    };
    form.done = "Saved. Pending notifications are retried immediately.".into();
    let what = context! { channel => view(&channel), form => form.view() };
    dashboard.page(&session, "alert_channel.html", what).await
}

/// The page `GET /alerts/channels/_new`.
pub(super) async fn fresh_channel(State(dashboard): State<Arc<Dashboard>>, session: Session) -> PageResult {
    let form = ALERT_CHANNEL.create::<AlertChannelSpec>(&Value::Null, &[]);
    dashboard.form_page(&session, &form, &[("/alerts", "Alerts"), ("/alerts#channels", "Channels")], ()).await
}

impl Dashboard {
    /// The names of the channels that a rule can notify: the log is always one.
    async fn channels(&self, session: &Session) -> Result<[(&'static str, Vec<String>); 1], PageError> {
        let channels = self.get_json(session, "/api/v1/ops/alertChannels").await?;
        let names = names_of(&channels).into_iter().filter(|name| name != "log").collect();
        Ok([("channels", names)])
    }
}
