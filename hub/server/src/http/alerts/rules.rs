//! Rules of alerts.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::HeaderMap;
use seawall_api::{AlertRule, AlertRuleDeleted, AlertRuleSpec, DurationText, MuteInput, Name};
use seawall_hub_core::domain;
use seawall_hub_core::domain::alert::{Condition, ConditionKind, Severity};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::{Millis, written as time};
use seawall_hub_core::service::{ChangeError, PendingPolicy};

use super::incidents::{end_of_mute, read_mute, running};
use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::ApiError;
use crate::http::fields::unknown;
use crate::http::input::{Input, duration, slug};
use crate::http::registry::resource::{
    ChangeTerms, NamedObject, ReadResult, ResourceInput, changed, find, remove, resource,
};
use crate::http::reply::{ApiReply, ApiResult};
use crate::hub::Server;

impl NamedObject for domain::alert::AlertRule {
    resource!(AlertRuleSpec => AlertRule, "alert rule", alerts.alert_rules, alerts.alert_rule);

    /// A rule about services that a key is not for looks as if it were not there.
    fn is_seen_by(&self, caller: &Caller) -> bool {
        self.services.iter().flatten().all(|service| caller.sees(service))
    }

    fn spec(&self, hub: &Server) -> Result<AlertRuleSpec, ApiError> {
        Ok(spec(hub, self))
    }

    async fn view(&self, hub: &Server) -> AlertRule {
        AlertRule {
            spec: spec(hub, self),
            version: self.version,
            built_in: Self::kind_named(&self.name).is_some(),
            changed_at: (self.version > 0).then(|| self.changed.to_string().into()),
        }
    }

    fn read(cx: &RequestContext, mut input: AlertRuleInput, _: Option<Self>) -> ReadResult<Self> {
        let built_in = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
        let built_in = built_in.as_ref().and_then(Self::kind_named);
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
        let kind = kind.ok_or_else(|| ApiError::missing(Self::NOUN))?;
        Ok((to_domain(spec, kind, muted), None))
    }

    async fn commit(self, cx: &RequestContext, terms: ChangeTerms) -> Result<Self, ChangeError> {
        cx.hub.alerts.put_alert_rule(cx, self, terms.expected).await
    }

    async fn remove(&self, cx: &RequestContext, terms: ChangeTerms) -> Result<(), ChangeError> {
        cx.hub.alerts.delete_alert_rule(cx, &self.name, terms.expected).await
    }
}

type AlertRuleInput = ResourceInput<domain::alert::AlertRule>;

/// Deletes a rule. A built-in one is there again, with its defaults.
pub(crate) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> ApiResult<AlertRuleDeleted> {
    let name = remove::<domain::alert::AlertRule>(&cx, &name, &headers, PendingPolicy::Refuse).await?;
    let reset = cx.hub.alerts.alert_rule(&name).is_some();
    Ok(ApiReply::new(AlertRuleDeleted { name: name.as_str().into(), deleted: !reset, reset }))
}

/// Handles `POST …/alertRules/{name}:mute`.
pub(crate) async fn mute(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<AlertRule> {
    let mute = read_mute(&cx.hub, Input::optional(&body)?)?;
    set_mute(&cx, &target, Some(mute)).await
}

/// Handles `POST …/alertRules/{name}:unmute`.
pub(crate) async fn unmute(cx: RequestContext, target: Target) -> ApiResult<AlertRule> {
    set_mute(&cx, &target, None).await
}

async fn set_mute(
    cx: &RequestContext,
    target: &Target,
    mute: Option<domain::alert::Mute>,
) -> ApiResult<AlertRule> {
    let domain::alert::AlertRule { name, services, .. } = find(cx, target)?;
    if services.is_none() && !cx.caller.sees_all() {
        let word = "the rule covers services that this key is not allowed for; mute the incident instead";
        return Err(ApiError::new("forbidden", word));
    }
    changed(cx, cx.hub.alerts.mute_alert_rule(cx, &name, mute).await).await
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
fn check_fields(kind: ConditionKind, input: &mut AlertRuleInput) {
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
