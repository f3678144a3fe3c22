//! Rules: the list, one of them with its versions, and what it would do.

use axum::http::Method;
use minijinja::{Value as View, context};
use serde_json::{Value, json};

use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::show::encoded;
use crate::dashboard::{PageError, PageResult};

const API: &str = "/api/v1/registry/rules";
/// The number of rules on a page.
const PAGE: usize = 100;
/// The number of events that a backtest evaluates.
const BACKTEST: u64 = 200;

pub(super) async fn list(page: PageContext) -> PageResult {
    let rules = page.get(API).await?;
    let all = rules.as_array().map_or(0, Vec::len);
    let search = page.query.get("search").unwrap_or_default().to_ascii_lowercase();
    let has = |rule: &&Value| {
        let texts = ["name", "eventType", "service"].map(|field| rule[field].as_str().unwrap_or_default());
        texts.iter().any(|text| text.contains(&search))
    };
    let from = page.query.get("from").and_then(|from| from.parse::<usize>().ok()).unwrap_or(0);
    let found: Vec<&Value> = rules.as_array().into_iter().flatten().filter(has).collect();
    let total = found.len();
    let rules: Vec<Value> = found.into_iter().skip(from).take(PAGE).cloned().collect();
    let next = (from + rules.len() < total).then_some(from + rules.len());
    let what = context! { rules => view(&Value::Array(rules)), all, total, next, search, from };
    page.page("rules.html", what).await
}

pub(super) async fn page(page: PageContext) -> PageResult {
    let name = encoded(&page.name);
    let rule = page.view(&page.at(API)).await?;
    let versions = page.get(&format!("{API}/{name}/versions")).await?;
    let recent = page.view(&format!("/api/v1/bridge/deliveries?rule={name}&page_size=10")).await?;
    let versions = compared(versions.as_array().map_or(&[], Vec::as_slice));
    page.page("rule.html", context! { rule, versions, recent }).await
}

/// Each version with what it changed of the one before. The newest comes first.
fn compared(versions: &[Value]) -> Vec<View> {
    let mut versions: Vec<&Value> = versions.iter().collect();
    versions.sort_by_key(|version| std::cmp::Reverse(version["version"].as_u64()));
    let older = versions.iter().skip(1).map(Some).chain([None]);
    let each = |(version, before): (&&Value, Option<&&Value>)| {
        let changes = before.map(|before| changes(before, version)).unwrap_or_default();
        context! { version => view(version), changes, first => before.is_none() }
    };
    versions.iter().zip(older).map(each).collect()
}

/// The fields that differ.
fn changes(before: &Value, now: &Value) -> Vec<View> {
    const BESIDE: [&str; 3] = ["version", "changedAt", "name"];
    let said = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => format!("{value:#}"),
    };
    let fields = now.as_object().into_iter().flatten();
    let differ = fields.filter(|(name, value)| !BESIDE.contains(&&***name) && before[&**name] != **value);
    differ
        .map(|(name, value)| context! { field => name, was => said(&before[&**name]), now => said(value) })
        .collect()
}

/// What it makes of an event, and of those that came lately. This page is not live: it would be worked out anew each second.
pub(super) async fn attempt(page: PageContext) -> PageResult {
    let rule = page.get(&page.at(API)).await?;
    let kind = encoded(rule["eventType"].as_str().unwrap_or("*"));
    let events = page.view_if(&format!("/api/v1/bridge/events?type={kind}&page_size=30")).await;
    let chosen = page.query.get("event");
    let body = chosen.map(|event| json!({"ruleName": page.name, "eventId": event}));
    let evaluation = asked(&page, &format!("{API}:evaluate"), body).await?;
    let body = page.query.get("backtest").map(|_| json!({"max": BACKTEST}));
    let backtest = asked(&page, &format!("{}:backtest", page.at(API)), body).await?;
    let chosen = chosen.unwrap_or_default();
    page.page("rule_try.html", context! { rule => view(&rule), events, chosen, evaluation, backtest }).await
}

/// What the API answers to a question that changes nothing, if there is one: the answer, or what is wrong.
async fn asked(page: &PageContext, path: &str, body: Option<Value>) -> Result<Option<View>, PageError> {
    let Some(body) = body else { return Ok(None) };
    let answer = page.dashboard.ask(&page.session, Method::POST, path, Some(&body), None).await?;
    let wrong = (!answer.status.is_success()).then(|| answer.message());
    Ok(Some(context! { wrong, data => view(answer.data()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a version says what it changed, and nothing of what is beside the point.
    #[test]
    fn ui_2_versions_say_what_they_changed() {
        let version = |number: u64, path: &str| json!({"name": "a", "version": number, "path": path, "changedAt": number, "body": null});
        let all = compared(&[version(1, "/a"), version(3, "/b"), version(2, "/a")]);
        let count = |at: usize| all[at].get_attr("changes").unwrap().len();
        assert_eq!((count(0), count(1), count(2)), (Some(1), Some(0), Some(0)));
        let change = all[0].get_attr("changes").unwrap().get_item_by_index(0).unwrap();
        let text = |name| change.get_attr(name).unwrap().to_string();
        assert_eq!((text("field"), text("was"), text("now")), ("path".into(), "/a".into(), "/b".into()));
    }
}
