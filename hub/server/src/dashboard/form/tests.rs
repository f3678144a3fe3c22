//! What is in the forms.

use minijinja::context;
use schemars::JsonSchema;
use seawall_api::{
    AlertChannelSpec, AlertRuleSpec, BaseUrl, KeySpec, Name, RuleSpec, ServiceSpec, SourceSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::dashboard::show::templates;
use crate::http::shape::ordered;

/// What a service would be with one more field.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceWithRegion {
    name: Name,
    address: BaseUrl,
    /// Where it runs.
    #[serde(default)]
    home_region: Option<String>,
}

fn rendered(form: &Form) -> String {
    let page = r#"{% import "form.html" as forms %}{{ forms.card(form, "token", policy) }}"#;
    let policy = context! { presets => Vec::<View>::new(), groups => Vec::<View>::new() };
    templates().render_str(page, context! { form => form.view(), policy }).unwrap()
}

/// The paths of the fields that can be written, apart from those that are hidden for a reason or have one value.
fn writable(read: &Value, written: &Value, below: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let cases = schema::cases_of(read, written);
    let parts = if cases.is_empty() { vec![(read, written)] } else { cases };
    for (name, field) in parts.into_iter().flat_map(|(read, written)| ordered(read, written)) {
        let path = if below.is_empty() { name.to_owned() } else { format!("{below}.{name}") };
        let inner = schema::without_null(field);
        let is_hidden = field["x-form"]["hidden"].as_str().is_some_and(|reason| reason.len() > 10);
        if is_hidden || inner["enum"].as_array().is_some_and(|words| words.len() == 1) {
            continue;
        }
        let has_parts = inner["oneOf"].is_array() || inner["properties"].is_object();
        paths.extend(if has_parts { writable(inner, inner, &path) } else { vec![path] });
    }
    paths
}

fn expect_every_field<S: JsonSchema + 'static>(subject: &FormSubject) {
    let page = rendered(&subject.create::<S>(&Value::Null, &[]));
    let (read, written) = schemas_of::<S>();
    let paths = writable(read, written, "");
    assert!(paths.len() > 3, "{paths:?}");
    for path in paths {
        let is_there =
            [format!("name=\"{path}\""), format!("name=\"{path}:")].iter().any(|name| page.contains(name));
        assert!(is_there, "the form of a {} has no `{path}`: {page}", subject.noun);
    }
}

/// API-4, UI-3: every field that can be written is in the form of its type, or says why not.
#[test]
fn ui_3_every_field_that_can_be_written_is_in_its_form() {
    expect_every_field::<ServiceSpec>(&SERVICE);
    expect_every_field::<SourceSpec>(&SOURCE);
    expect_every_field::<RuleSpec>(&RULE);
    expect_every_field::<KeySpec>(&KEY);
    expect_every_field::<AlertRuleSpec>(&ALERT_RULE);
    expect_every_field::<AlertChannelSpec>(&ALERT_CHANNEL);
}

/// API-4: a field of a specification is in its form without a further edit.
#[test]
fn api_4_a_new_field_of_a_specification_is_in_its_form() {
    let values = json!({"name": "billing", "address": "http://a", "homeRegion": "north"});
    let page = rendered(&SERVICE.change::<ServiceWithRegion>(&values, &[]));
    assert!(page.contains("Home region <small>Where it runs</small>"), "{page}");
    assert!(page.contains(r#"name="homeRegion""#) && page.contains(r#"value="north""#), "{page}");
}

/// UI-3: the form of a service that exists has its values, and no value of a secret.
#[test]
fn ui_3_the_form_of_a_service_has_its_values() {
    let service = json!({
        "name": "billing", "address": "https://billing.example", "headers": {"x-team": "orders"}, "paused": true,
        "auth": {"type": "bearer", "secret": "…"}, "policy": {}, "version": 3,
    });
    let page = rendered(&SERVICE.change::<ServiceSpec>(&service, &[]));
    for part in [
        r#"name="paused:json" value="true""#,
        r#"name="auth:json" value="null""#,
        r#"name="version:number" value="3""#,
        r#"value="PUT""#,
        "Keep current (bearer)",
        "x-team: orders",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains(r#"name="name""#) && !page.contains("value=\"…\""), "{page}");
}

/// UI-3: a change of an alert rule says null for what was emptied, offers the thresholds of its kind, and leaves its mute alone.
#[test]
fn ui_3_the_form_of_an_alert_rule_changes_what_it_shows() {
    let rule = json!({
        "name": "own", "kind": "deadLetters", "enabled": true, "severity": "warning", "services": ["billing"], "channels": ["duty"],
        "for": "0s", "resolveAfter": "1m", "muted": {"until": "2026-11-15T12:00:00Z", "reason": "a move"}, "moreThan": 10, "window": "5m",
    });
    let names = [("channels", vec!["chat".to_owned(), "duty".to_owned()])];
    let page = rendered(&ALERT_RULE.change::<AlertRuleSpec>(&rule, &names));
    for part in [
        r#"value="PATCH""#,
        r#"name="services:json" value="null""#,
        r#"name="moreThan:number""#,
        r#"value="chat">"#,
        r#"value="duty" checked>"#,
        r#"<option value="some" selected>"#,
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    for part in ["muted", "olderThan", "freeBytesBelow", r#"name="kind""#, r#"name="name""#] {
        assert!(!page.contains(part), "{part} is in {page}");
    }
}

/// UI-3, SEC-2: the form of a channel keeps what is secret unless something else is written.
#[test]
fn ui_3_the_form_of_a_channel_keeps_its_secrets() {
    let channel = json!({"name": "duty", "type": "webhook", "url": "https://pager.example/…", "secret": "…", "version": 1});
    let page = rendered(&ALERT_CHANNEL.change::<AlertChannelSpec>(&channel, &[]));
    assert!(
        page.contains(
            r#"name="url" type="text" value="" placeholder="https:&#x2f;&#x2f;pager.example&#x2f;…""#
        ),
        "{page}"
    );
    assert!(page.contains(r#"name="secret" type="password" value="""#), "{page}");
    assert!(
        page.matches("leave empty to keep").count() == 2 && !page.contains("null") && !page.contains("host"),
        "{page}"
    );
    let unreadable = json!({"name": "duty", "type": null});
    let page = rendered(&ALERT_CHANNEL.replace::<AlertChannelSpec>(&unreadable, &[]));
    assert!(page.contains(r#"value="PUT""#) && page.contains(r#"name="host""#), "{page}");
}
