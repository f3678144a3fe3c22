//! Services: the list, one of them with all that it goes through, and its form.

use minijinja::context;
use seawall_api::ServiceSpec;
use serde_json::{Value, json};

use super::overview::span;
use super::policy;
use crate::dashboard::ask::view;
use crate::dashboard::context::PageContext;
use crate::dashboard::form::SERVICE;
use crate::dashboard::show::encoded;
use crate::dashboard::{PageResult, charts};

const API: &str = "/api/v1/registry/services";
/// The pages above a form.
const ABOVE: [(&str, &str); 1] = [("/services", "Services")];

pub(super) async fn list(page: PageContext) -> PageResult {
    let filters = ["search", "circuit", "sort"];
    page.list("services.html", "/services", "/api/v1/ops/services?page_size=50", &filters).await
}

pub(super) async fn page(page: PageContext) -> PageResult {
    let (minutes, name) = (span(&page.query), encoded(&page.name));
    let service = page.view(&page.at(API)).await?;
    let circuit = page.view(&format!("{API}/{name}/circuit")).await?;
    let standing = page.get(&format!("/api/v1/ops/services?service={name}")).await?;
    let history = page.get(&format!("/api/v1/ops/history?service={name}&minutes={minutes}")).await?;
    let recent = page.view(&format!("/api/v1/bridge/deliveries?service={name}&page_size=10")).await?;
    let rules = page.get("/api/v1/registry/rules").await?;
    let is_own = |rule: &&Value| rule["service"].as_str() == Some(&page.name);
    let rules: Vec<Value> = rules.as_array().into_iter().flatten().filter(is_own).cloned().collect();
    let what = context! {
        service, circuit, standing => view(&standing["services"][0]), lines => charts::lines(&history), minutes,
        recent, rules => view(&Value::Array(rules)),
    };
    page.page("service.html", what).await
}

/// What a new one begins with: what the hub would take without a word about it.
fn usual() -> Value {
    json!({
        "attempt_timeout": "3s", "retry": {"max_attempts": 3},
        "breaker": {"consecutive_failures": 5, "cooldown": "30s"}, "bulkhead": {"max_calls": 20},
    })
}

pub(super) async fn fresh(page: PageContext) -> PageResult {
    let policy = policy::with_preset(usual(), page.query.get("preset").unwrap_or_default());
    page.form(&SERVICE.create::<ServiceSpec>(&Value::Null, &[]), &ABOVE, policy::form(&policy)).await
}

pub(super) async fn edit(page: PageContext) -> PageResult {
    let service = page.get(&page.at(API)).await?;
    let policy = policy::form(&service["policy"]);
    page.form(&SERVICE.change::<ServiceSpec>(&service, &[]), &ABOVE, policy).await
}
