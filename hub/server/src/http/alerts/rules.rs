//! Rules of alerts.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{AlertRule, AlertRuleDeleted, AlertRuleSpec, DurationText, MuteInput, Name};
use seawall_hub_core::domain;
use seawall_hub_core::domain::alert::{Condition, ConditionKind, Severity};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::{Millis, written as time};

use crate::http::access::Caller;
use crate::http::alerts::incidents::{end_of_mute, mute, running};
use crate::http::context::RequestContext;
use crate::http::fields::unknown;
use crate::http::input::{Input, duration, retried, slug};
use crate::http::reply::{expected, missing, parse, problem, refused, success, versioned};
use crate::http::{HandlerResult, no_verb, nothing_here, split_verb};
use crate::hub::Server;

pub(in crate::http) async fn list(cx: RequestContext) -> Response {
    let rules = cx.hub.alerts.alert_rules();
    let seen = rules.iter().filter(|rule| sees(&cx.caller, rule));
    success(StatusCode::OK, &seen.map(|rule| view(&cx.hub, rule)).collect::<Vec<_>>())
}

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    match find(&cx.hub, &name).filter(|rule| sees(&cx.caller, rule)) {
        Some(rule) => versioned(StatusCode::OK, rule.version, &view(&cx.hub, &rule)),
        None => missing("alert rule"),
    }
}

pub(in crate::http) async fn replace(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    keep(&cx, expected(&headers)?, Input::put(&body, &name)?).await
}

pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let (stated, change) = (expected(&headers)?, parse(&body)?);
    let (cx, name, change) = (&cx, &*name, &change);
    retried(stated, || async move {
        let Some(rule) = find(&cx.hub, name) else { return Ok(missing("alert rule")) };
        let input = Input::patch(&spec(&cx.hub, &rule), change.clone(), name);
        keep(cx, stated.or(Some(rule.version)), input).await
    })
    .await
}

pub(in crate::http) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> HandlerResult {
    let Ok(name) = Slug::new(&name) else { return Ok(missing("alert rule")) };
    Ok(match cx.hub.alerts.delete_alert_rule(&cx, &name, expected(&headers)?).await {
        Ok(()) => {
            let there = cx.hub.alerts.alert_rule(&name).is_some();
            success(
                StatusCode::OK,
                &AlertRuleDeleted { name: name.as_str().into(), deleted: !there, reset: there },
            )
        }
        Err(why) => refused(why, "alert rule"),
    })
}

/// Handles the actions `:mute` and `:unmute`.
pub(in crate::http) async fn act(cx: RequestContext, Path(part): Path<String>, body: Bytes) -> HandlerResult {
    let Some((name, verb)) = split_verb(&part) else { return Ok(nothing_here()) };
    let muted = match verb {
        "mute" => Some(mute(&cx.hub, Input::optional(&body)?)?),
        "unmute" => None,
        verb => return Ok(no_verb(verb, ":mute, :unmute")),
    };
    let Some(domain::alert::AlertRule { name, services, .. }) =
        find(&cx.hub, name).filter(|rule| sees(&cx.caller, rule))
    else {
        return Ok(missing("alert rule"));
    };
    if services.is_none() && !cx.caller.sees_all() {
        let word = "the rule covers services that this key is not allowed for; mute the incident instead";
        return Ok(problem(StatusCode::FORBIDDEN, "forbidden", word, false));
    }
    Ok(match cx.hub.alerts.mute_alert_rule(&cx, &name, muted).await {
        Ok(rule) => versioned(StatusCode::OK, rule.version, &view(&cx.hub, &rule)),
        Err(why) => refused(why, "alert rule"),
    })
}

/// A rule about services that a key is not for looks as if it were not there.
fn sees(caller: &Caller, rule: &domain::alert::AlertRule) -> bool {
    rule.services.iter().flatten().all(|service| caller.sees(service))
}

fn find(hub: &Server, name: &str) -> Option<domain::alert::AlertRule> {
    Slug::new(name).ok().and_then(|name| hub.alerts.alert_rule(&name))
}

async fn keep(
    cx: &RequestContext,
    expected: Option<u64>,
    mut input: Input<AlertRuleSpec, AlertRule>,
) -> HandlerResult {
    let built_in = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
    let built_in = built_in.as_ref().and_then(domain::alert::AlertRule::kind_named);
    let kind = input.get::<String>("kind").and_then(|word| ConditionKind::from_word(&word)).or(built_in);
    match kind {
        Some(kind) => check_fields(kind, &mut input),
        None if !input.has_problem_with("kind") => {
            input.wrong("kind", "required");
        }
        None => {}
    }
    let muted = input.raw("muted").is_some().then(|| end_of_mute(cx.hub.now(), "muted.", &mut input));
    let spec = input.finish()?;
    let Some(kind) = kind else { return Ok(missing("alert rule")) };
    Ok(match cx.hub.alerts.put_alert_rule(cx, to_domain(spec, kind, muted), expected).await {
        Ok(kept) => {
            let fresh = kept.version == 1 && domain::alert::AlertRule::kind_named(&kept.name).is_none();
            let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &view(&cx.hub, &kept))
        }
        Err(why) => refused(why, "alert rule"),
    })
}

/// The fields that rules of every kind have.
const COMMON: &str = "name, kind, enabled, severity, services, channels, for, resolveAfter, muted";

fn own_fields(kind: ConditionKind) -> &'static [&'static str] {
    match kind {
        ConditionKind::CircuitOpen => &[],
        ConditionKind::DeadLetters | ConditionKind::Warnings | ConditionKind::Errors => {
            &["moreThan", "window"]
        }
        ConditionKind::OldestDue => &["olderThan"],
        ConditionKind::DataLossRisk => &["freeBytesBelow"],
    }
}

/// Refuses the thresholds of another kind.
fn check_fields(kind: ConditionKind, input: &mut Input<AlertRuleSpec, AlertRule>) {
    let own = own_fields(kind);
    for field in ["moreThan", "window", "olderThan", "freeBytesBelow"] {
        if !own.contains(&field) && input.raw(field).is_some() {
            let known = std::iter::once(COMMON).chain(own.iter().copied()).collect::<Vec<_>>().join(", ");
            input.wrong(field, unknown("field", field, &known));
        }
    }
}

/// The rule that a specification describes: what is omitted is as usual for its kind.
fn to_domain(spec: AlertRuleSpec, kind: ConditionKind, muted: Option<Millis>) -> domain::alert::AlertRule {
    let AlertRuleSpec { more_than, window, older_than, free_bytes_below, .. } = spec;
    let usual = domain::alert::AlertRule::usual(slug(&spec.name), kind);
    let of = |text: Option<DurationText>, usual: Duration| text.as_ref().map_or(usual, duration);
    let counts = |usual: u32| more_than.and_then(|count| u32::try_from(count).ok()).unwrap_or(usual);
    let condition = match usual.condition {
        Condition::CircuitOpen => Condition::CircuitOpen,
        Condition::DeadLetters { more_than, window: usual } => {
            Condition::DeadLetters { more_than: counts(more_than), window: of(window, usual) }
        }
        Condition::Warnings { more_than, window: usual } => {
            Condition::Warnings { more_than: counts(more_than), window: of(window, usual) }
        }
        Condition::Errors { more_than, window: usual } => {
            Condition::Errors { more_than: counts(more_than), window: of(window, usual) }
        }
        Condition::OldestDue { older_than: usual } => {
            Condition::OldestDue { older_than: of(older_than, usual) }
        }
        Condition::DataLossRisk { free_below } => {
            Condition::DataLossRisk { free_below: free_bytes_below.unwrap_or(free_below) }
        }
    };
    let names = |names: Vec<Name>| names.iter().map(slug).collect();
    let severity = spec.severity.and_then(|severity| Severity::from_word(severity.as_str()));
    domain::alert::AlertRule {
        name: usual.name,
        version: usual.version,
        condition,
        enabled: spec.enabled.unwrap_or(usual.enabled),
        severity: severity.unwrap_or(usual.severity),
        services: spec.services.map(names),
        channels: spec.channels.map(names),
        holds: of(spec.r#for, usual.holds),
        clears: of(spec.resolve_after, usual.clears),
        muted: muted.zip(spec.muted).map(|(until, mute)| domain::alert::Mute { until, reason: mute.reason }),
        changed: usual.changed,
    }
}

/// The specification of an alert rule, with its defaults.
fn spec(hub: &Server, rule: &domain::alert::AlertRule) -> AlertRuleSpec {
    let names = |names: &Vec<Slug>| names.iter().map(|name| name.as_str().into()).collect();
    let (more_than, window) = match rule.condition {
        Condition::DeadLetters { more_than, window }
        | Condition::Warnings { more_than, window }
        | Condition::Errors { more_than, window } => (Some(more_than.into()), Some(time(window).into())),
        Condition::CircuitOpen | Condition::OldestDue { .. } | Condition::DataLossRisk { .. } => (None, None),
    };
    let muted = |mute: &domain::alert::Mute| MuteInput {
        r#for: None,
        until: Some(mute.until.to_string().into()),
        reason: mute.reason.clone(),
    };
    AlertRuleSpec {
        name: rule.name.as_str().into(),
        kind: Some(rule.kind().word().into()),
        enabled: Some(rule.enabled),
        severity: Some(rule.severity.word().into()),
        services: rule.services.as_ref().map(names),
        channels: rule.channels.as_ref().map(names),
        r#for: Some(time(rule.holds).into()),
        resolve_after: Some(time(rule.clears).into()),
        muted: running(rule.muted.as_ref(), hub.now()).map(muted),
        more_than,
        window,
        older_than: match rule.condition {
            Condition::OldestDue { older_than } => Some(time(older_than).into()),
            _ => None,
        },
        free_bytes_below: match rule.condition {
            Condition::DataLossRisk { free_below } => Some(free_below),
            _ => None,
        },
    }
}

fn view(hub: &Server, rule: &domain::alert::AlertRule) -> AlertRule {
    AlertRule {
        spec: spec(hub, rule),
        version: rule.version,
        built_in: domain::alert::AlertRule::kind_named(&rule.name).is_some(),
        changed_at: (rule.version > 0).then(|| rule.changed.to_string().into()),
    }
}
