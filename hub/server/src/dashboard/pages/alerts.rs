//! Alerts: what is wrong and who was told, by which rules, and over which channels.

use minijinja::context;
use seawall_api::{AlertChannelSpec, AlertRuleSpec};
use serde_json::Value;

use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::form::{ALERT_CHANNEL, ALERT_RULE, names_of};
use crate::dashboard::show::encoded;
use crate::dashboard::{PageError, PageResult};

const ALERTS: &str = "/api/v1/ops/alerts";
const RULES: &str = "/api/v1/ops/alertRules";
const CHANNELS: &str = "/api/v1/ops/alertChannels";

/// `GET /alerts`: what is open first, then what is over; the rules and the channels below. With a state the page shows that list
/// alone. What is no state, and what is no parameter, is for the API to say.
pub(super) async fn list(mut page: PageContext) -> PageResult {
    let (state, open_token) = (page.query.take("state"), page.query.take("open_token"));
    let (mut open, mut resolved, mut wrong) = (Value::Null, Value::Null, None);
    if state.as_deref().unwrap_or("open") != "resolved" {
        let path = format!("{ALERTS}?page_size=100&state={}", encoded(state.as_deref().unwrap_or("open")));
        let mut path = page.query.with(&path, |name| name != "page_token");
        if let Some(token) = &open_token {
            path.push_str(&format!("&page_token={}", encoded(token)));
        }
        (open, wrong) = page.filtered(&path).await?;
    }
    if wrong.is_none() && state.as_deref().unwrap_or("resolved") == "resolved" {
        let path = page.query.all(&format!("{ALERTS}?state=resolved&page_size=20"));
        (resolved, wrong) = page.filtered(&path).await?;
    }
    let further = open_token.is_some() || page.query.get("page_token").is_some();
    let what = context! {
        state, limited => page.session.key.services.is_some(), open => view(&open), resolved => view(&resolved), wrong,
        rules => page.view(RULES).await?, channels => page.view(CHANNELS).await?,
        further,
    };
    page.page("alerts.html", what).await
}
/// `GET /alerts/{id}`: an incident, with who was told.
pub(super) async fn page(page: PageContext) -> PageResult {
    page.page("alert.html", context! { alert => page.view(&page.at(ALERTS)).await? }).await
}

/// `GET /alerts/rules/{name}`: what a rule says, and the form that changes it.
pub(super) async fn rule(page: PageContext) -> PageResult {
    let rule = page.get(&page.at(RULES)).await?;
    let form = ALERT_RULE.change::<AlertRuleSpec>(&rule, &channels(&page).await?);
    page.page("alert_rule.html", context! { rule => view(&rule), form => form.view() }).await
}

/// The page `GET /alerts/rules/_new`.
pub(super) async fn fresh_rule(page: PageContext) -> PageResult {
    let form = ALERT_RULE.create::<AlertRuleSpec>(&Value::Null, &channels(&page).await?);
    page.form(&form, &[("/alerts", "Alerts"), ("/alerts#rules", "Rules")], ()).await
}

/// `GET /alerts/channels/{name}`: where it leads, without its secrets; a test, and the form that changes it.
pub(super) async fn channel(page: PageContext) -> PageResult {
    let channel = page.get(&page.at(CHANNELS)).await?;
    // One that can't be decrypted is written whole.
    let mut form = match channel["type"].is_string() {
        true => ALERT_CHANNEL.change::<AlertChannelSpec>(&channel, &[]),
        false => ALERT_CHANNEL.replace::<AlertChannelSpec>(&channel, &[]),
    };
    form.done = "Saved. Pending notifications are retried immediately.".into();
    page.page("alert_channel.html", context! { channel => view(&channel), form => form.view() }).await
}

/// The page `GET /alerts/channels/_new`.
pub(super) async fn fresh_channel(page: PageContext) -> PageResult {
    let form = ALERT_CHANNEL.create::<AlertChannelSpec>(&Value::Null, &[]);
    page.form(&form, &[("/alerts", "Alerts"), ("/alerts#channels", "Channels")], ()).await
}

/// The names of the channels that a rule can notify: the log is always one.
async fn channels(page: &PageContext) -> Result<[(&'static str, Vec<String>); 1], PageError> {
    let names = names_of(&page.get(CHANNELS).await?).into_iter().filter(|name| name != "log").collect();
    Ok([("channels", names)])
}
