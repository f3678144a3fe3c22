//! Rules of alerts.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::alert::{AlertRule, Condition, Kind, Severity};
use seawall_hub_core::domain::slug::Slug;
use serde_json::{Value, json};

use super::access::Caller;
use super::alerts::{mute, muted, read_mute};
use super::fields::Fields;
use super::reply::{expected, missing, parse, problem, refused, success, versioned, wrong_fields};
use super::services::patched;
use super::{Caught, no_verb, nothing_here, split_verb};
use crate::hub::Hub;

pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let rules = hub.alert_rules();
    let seen = rules.iter().filter(|rule| sees(&caller, rule));
    success(StatusCode::OK, &seen.map(|rule| shown(&hub, rule)).collect())
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match find(&hub, &name).filter(|rule| sees(&caller, rule)) {
        Some(rule) => versioned(StatusCode::OK, rule.version, &shown(&hub, &rule)),
        None => missing("alert rule"),
    }
}

pub(super) async fn replace(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &name, expected(&headers)?, parse(&body)?).await
}

pub(super) async fn change(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let (said, change) = (expected(&headers)?, parse(&body)?);
    loop {
        let Some(rule) = find(&hub, &name) else { return Ok(missing("alert rule")) };
        let seen = said.unwrap_or(rule.version);
        let answer =
            keep(&hub, &name, Some(seen), patched(written(&hub, &rule), change.clone(), &[])).await?;
        // Whoever does not say which version they have seen means the newest, also if it came this moment.
        if said.is_some() || answer.status() != StatusCode::PRECONDITION_FAILED {
            return Ok(answer);
        }
    }
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Caught {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("alert rule")) };
    Ok(match hub.delete_alert_rule(&name, expected(&headers)?).await {
        Ok(()) => {
            let there = hub.alert_rule(&name).is_some();
            success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": !there, "reset": there}))
        }
        Err(why) => refused(why, "alert rule"),
    })
}

/// `:mute`, `:unmute`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(part): Path<String>,
    body: Bytes,
) -> Caught {
    let Some((name, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    let muted = match verb {
        "mute" => Some(mute(&hub, Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? }))?),
        "unmute" => None,
        verb => return Ok(no_verb(verb, ":mute, :unmute")),
    };
    let Some(AlertRule { name, services, .. }) = find(&hub, name).filter(|rule| sees(&caller, rule)) else {
        return Ok(missing("alert rule"));
    };
    if services.is_none() && !caller.sees_all() {
        let word = "the rule is about services that this key is not for; mute the incident instead";
        return Ok(problem(StatusCode::FORBIDDEN, "forbidden", word, false));
    }
    Ok(match hub.mute_alert_rule(&name, muted).await {
        Ok(rule) => versioned(StatusCode::OK, rule.version, &shown(&hub, &rule)),
        Err(why) => refused(why, "alert rule"),
    })
}

/// A rule about services that a key is not for looks as if it were not there.
fn sees(caller: &Caller, rule: &AlertRule) -> bool {
    rule.services.iter().flatten().all(|service| caller.sees(service))
}

fn find(hub: &Hub, name: &str) -> Option<AlertRule> {
    Slug::new(name).ok().and_then(|name| hub.alert_rule(&name))
}

async fn keep(hub: &Hub, name: &str, expected: Option<u64>, body: Value) -> Caught {
    let mut fields = Fields::new(body);
    let name = fields.name(Some(name));
    // What is shown can be written back: what nobody can write is passed over.
    for shown_only in ["version", "builtIn", "changedAt"] {
        fields.any(shown_only);
    }
    let built_in = name.as_ref().and_then(AlertRule::kind_named);
    let kind = match fields.text("kind") {
        Some(word) => fields.parsed("kind", &word, |word| {
            let words = Kind::ALL.map(Kind::word).join(", ");
            Kind::from_word(word).ok_or_else(|| format!("`{word}` is none of {words}"))
        }),
        None if built_in.is_some() => built_in,
        None => {
            fields.wrong("kind", "it is missing");
            None
        }
    };
    let rule = name.zip(kind).map(|(name, kind)| read(hub, &mut fields, AlertRule::usual(name, kind)));
    if rule.is_none() {
        // What else is wrong can't be known.
        fields.forget();
    }
    let kind = rule.as_ref().map(AlertRule::kind);
    let known = format!(
        "name, kind, enabled, severity, services, channels, for, resolveAfter, muted{}",
        kind.map_or("", own_fields)
    );
    let problems = fields.end(&known);
    let Some(rule) = rule.filter(|_| problems.is_empty()) else { return Ok(wrong_fields(&problems)) };
    Ok(match hub.put_alert_rule(rule, expected).await {
        Ok(kept) => {
            let fresh = kept.version == 1 && AlertRule::kind_named(&kept.name).is_none();
            let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(hub, &kept))
        }
        Err(why) => refused(why, "alert rule"),
    })
}

fn own_fields(kind: Kind) -> &'static str {
    match kind {
        Kind::CircuitOpen => "",
        Kind::DeadLetters | Kind::Warnings | Kind::Errors => ", moreThan, window",
        Kind::OldestDue => ", olderThan",
        Kind::DataLossRisk => ", freeBytesBelow",
    }
}

/// What is written, over what is usual.
fn read(hub: &Hub, fields: &mut Fields, mut rule: AlertRule) -> AlertRule {
    match &mut rule.condition {
        Condition::CircuitOpen => {}
        Condition::DeadLetters { more_than, window }
        | Condition::Warnings { more_than, window }
        | Condition::Errors { more_than, window } => {
            let most = u64::from(u32::MAX);
            let said = fields.number("moreThan", 0, most).and_then(|said| u32::try_from(said).ok());
            *more_than = said.unwrap_or(*more_than);
            *window = fields.duration("window").unwrap_or(*window);
        }
        Condition::OldestDue { older_than } => {
            *older_than = fields.duration("olderThan").unwrap_or(*older_than);
        }
        Condition::DataLossRisk { free_below } => {
            *free_below = fields.number("freeBytesBelow", 0, 1 << 60).unwrap_or(*free_below);
        }
    }
    rule.enabled = fields.switch("enabled", rule.enabled);
    if let Some(word) = fields.text("severity") {
        let severity = Severity::from_word(&word);
        if severity.is_none() {
            fields.wrong("severity", "it is `warning` or `critical`");
        }
        rule.severity = severity.unwrap_or(rule.severity);
    }
    rule.services = slugs(fields, "services");
    rule.channels = slugs(fields, "channels");
    rule.holds = fields.duration("for").unwrap_or(rule.holds);
    rule.clears = fields.duration("resolveAfter").unwrap_or(rule.clears);
    if let Some(mut group) = fields.group("muted") {
        rule.muted = read_mute(hub, &mut group);
        fields.within("muted", group, "for, until, reason");
    }
    rule
}

/// Names; none means all.
fn slugs(fields: &mut Fields, field: &str) -> Option<Vec<Slug>> {
    if !fields.has(field) {
        return None;
    }
    let named = fields.any(field)?;
    let names: Option<Vec<String>> = named
        .as_array()
        .and_then(|names| names.iter().map(|name| name.as_str().map(ToOwned::to_owned)).collect());
    let Some(names) = names else {
        fields.wrong(field, "a list of names is expected, or null for all");
        return None;
    };
    let parse = |name: &String| Slug::new(name).map_err(|error| error.to_string());
    let names: Result<Vec<Slug>, String> = names.iter().map(parse).collect();
    names.map_err(|reason| fields.wrong(field, reason)).ok()
}

/// As it is written.
fn written(hub: &Hub, rule: &AlertRule) -> Value {
    let names = |names: &Vec<Slug>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut all = json!({
        "name": rule.name.as_str(), "kind": rule.kind().word(), "enabled": rule.enabled, "severity": rule.severity.word(),
        "services": rule.services.as_ref().map(names), "channels": rule.channels.as_ref().map(names),
        "for": time(rule.holds), "resolveAfter": time(rule.clears),
    });
    match rule.condition {
        Condition::CircuitOpen => {}
        Condition::DeadLetters { more_than, window }
        | Condition::Warnings { more_than, window }
        | Condition::Errors { more_than, window } => {
            (all["moreThan"], all["window"]) = (json!(more_than), json!(time(window)));
        }
        Condition::OldestDue { older_than } => all["olderThan"] = json!(time(older_than)),
        Condition::DataLossRisk { free_below } => all["freeBytesBelow"] = json!(free_below),
    }
    all["muted"] = muted(rule.muted.as_ref(), hub.now());
    all
}

fn shown(hub: &Hub, rule: &AlertRule) -> Value {
    let mut all = written(hub, rule);
    all["version"] = json!(rule.version);
    all["builtIn"] = json!(AlertRule::kind_named(&rule.name).is_some());
    all["changedAt"] = json!((rule.version > 0).then(|| rule.changed.to_string()));
    all
}

/// As people write it, and as it is read again.
pub(super) fn time(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(86_400_000) => format!("{}d", millis / 86_400_000),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}
