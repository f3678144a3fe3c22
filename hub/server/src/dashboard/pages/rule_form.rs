//! A rule, to be written while its request is seen beside it.

use minijinja::context;
use seawall_api::RuleSpec;
use serde_json::{Value, json};

use crate::dashboard::PageResult;
use crate::dashboard::context::PageContext;
use crate::dashboard::form::{RULE, names_of};
use crate::dashboard::guard::leads_here;
use crate::dashboard::show::encoded;

/// The number of events that are offered for a test.
const OFFERED: usize = 30;
/// The event for a test while there is no other.
const SAMPLE: &str = r#"{
  "id": "sample-1",
  "type": "order.created",
  "data": {"id": "A-7", "total": 120.5, "customer": {"email": "ada@example.com"}}
}"#;

pub(super) async fn fresh(page: PageContext) -> PageResult {
    let rule = json!({"eventType": page.query.get("type"), "service": page.query.get("service")});
    shown(&page, &rule, true).await
}

pub(super) async fn edit(page: PageContext) -> PageResult {
    let rule = page.get(&page.at("/api/v1/registry/rules")).await?;
    shown(&page, &rule, false).await
}

async fn shown(page: &PageContext, rule: &Value, is_new: bool) -> PageResult {
    let services = names_of(&page.get("/api/v1/registry/services").await?);
    let (has_services, names) = (!services.is_empty(), [("services", services)]);
    let chosen = page.query.get("event");
    // The events of its type that came last, or of any.
    let mut events = format!("/api/v1/bridge/events?page_size={OFFERED}");
    let kind = rule["eventType"].as_str().unwrap_or_default();
    if !kind.is_empty() && (!is_new || chosen.is_some()) {
        events.push_str(&format!("&type={}", encoded(kind)));
    }
    let events = page.view_if(&events).await;
    let mut form = match is_new {
        true => RULE.create::<RuleSpec>(rule, &names),
        false => RULE.change::<RuleSpec>(rule, &names),
    };
    if !is_new {
        form.button = "Save as new version".into();
        // Whoever came from a group of dead letters goes back there, to replay it.
        if let Some(back) = page.query.get("back").filter(|back| leads_here(back)) {
            (form.to, form.cancel) = (back.to_owned(), back.to_owned());
        }
    }
    let what = context! {
        form => form.view(), has_services, events, chosen => chosen.unwrap_or_default(), sample => SAMPLE,
    };
    page.page("rule_form.html", what).await
}
