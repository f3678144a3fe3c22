//! The routes of rules.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::HeaderMap;
use seawall_api::{
    self as wire, DeliverySettings, DurationText, FieldProblem, Headers, OnDeadLetter, OrderingSettings,
    Reason, RollbackInput, Rule, RuleSpec,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::delivery::{FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::OrderingRule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::{Millis, written as time};
use seawall_hub_core::render::{RequestTemplate, RuleText};
use seawall_hub_core::service::ChangeError;
use serde_json::Value;

use super::resource::{ChangeTerms, NamedObject, ReadResult, ResourceInput, changed, find, resource};
use crate::http::access::Caller;
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, field_problems, template_problem};
use crate::http::input::{Input, NoInput, duration, slug};
use crate::http::reply::{ApiReply, ApiResult, expected};
use crate::hub::Server;

impl NamedObject for domain::rule::Rule {
    resource!(RuleSpec => Rule, "rule", registry.rules, registry.rule);

    fn is_seen_by(&self, caller: &Caller) -> bool {
        caller.sees(&self.service)
    }

    fn spec(&self, _: &Server) -> Result<RuleSpec, ApiError> {
        Ok(spec(self))
    }

    async fn view(&self, _: &Server) -> Rule {
        view(self)
    }

    fn read(cx: &RequestContext, mut input: RuleInput, before: Option<Self>) -> ReadResult<Self> {
        let version = input.version().filter(|version| *version > 0);
        check(&mut input);
        if input.has_problems() {
            let slug = |field: &str| input.get::<String>(field).and_then(|name| Slug::new(&name).ok());
            let (name, service) = (slug("name"), slug("service"));
            let problems = cx.hub.registry.problems_of_names(name.as_ref(), service.as_ref());
            input.also(field_problems(problems));
        }
        let rule = to_domain(input.finish()?);
        let is_foreign = |rule: &Self| !rule.is_seen_by(&cx.caller);
        if is_foreign(&rule) || before.as_ref().is_some_and(is_foreign) {
            return Err(ApiError::missing(Self::NOUN));
        }
        Ok((rule, version))
    }

    async fn commit(self, cx: &RequestContext, terms: ChangeTerms) -> Result<Self, ChangeError> {
        cx.hub.registry.put_rule_once(cx, self, terms.expected, terms.once).await
    }

    async fn remove(&self, cx: &RequestContext, terms: ChangeTerms) -> Result<(), ChangeError> {
        cx.hub.registry.delete_rule(cx, &self.name, terms.expected, terms.pending).await
    }
}

/// A rule to be read.
pub(crate) type RuleInput = ResourceInput<domain::rule::Rule>;

/// Reads a rule that is not stored, or finds every problem that it has in itself.
pub(crate) fn read(mut input: RuleInput) -> Result<domain::rule::Rule, Vec<FieldProblem>> {
    // A version that was returned with a rule means nothing here, but it has to be one.
    let _ = input.version();
    check(&mut input);
    input.finish().map(to_domain)
}

/// Checks the templates and the back-off of a rule, as far as its fields could be read.
fn check(input: &mut RuleInput) {
    let headers: Vec<(String, String)> = input.get::<Headers>("headers").into_iter().flatten().collect();
    let (filter, order): (Option<String>, Option<String>) = (input.get("filter"), input.get("ordering.key"));
    let method =
        input.get::<String>("method").map_or_else(|| "POST".into(), |text| text.to_ascii_uppercase());
    let (path, body) = (input.get::<String>("path"), input.get::<Value>("body"));
    let text = RuleText {
        filter: filter.as_deref(),
        method: &method,
        path: path.as_deref().unwrap_or("/"),
        headers: &headers,
        body: body.as_ref(),
        order: order.as_deref(),
    };
    let mistakes = RequestTemplate::new(&text).err().unwrap_or_default();
    input.also(mistakes.into_iter().map(template_problem));
    let default = Schedule::default();
    let of = |field: &str| input.get::<DurationText>(field).map(|text| duration(&text));
    let (base, cap) =
        (of("delivery.base").unwrap_or(default.base), of("delivery.cap").unwrap_or(default.cap));
    // What is kept is in milliseconds: less than one would be none.
    if base.as_millis() == 0 || base > cap {
        input.wrong("delivery.base", "must be at least `1ms` and at most `cap`");
    }
}

/// The rule that a specification describes.
fn to_domain(spec: RuleSpec) -> domain::rule::Rule {
    let delivery = spec.delivery.unwrap_or_default();
    let default = Schedule::default();
    let ordering = |ordering: OrderingSettings| OrderingRule {
        key: ordering.key.into_string(),
        hold: ordering.on_dead_letter == Some(OnDeadLetter::Hold),
    };
    domain::rule::Rule {
        name: slug(&spec.name),
        version: 0,
        events: Pattern::new(spec.event_type.as_str()).expect("the reader has checked it"),
        filter: spec.filter.map(seawall_api::Filter::into_string),
        service: slug(&spec.service),
        method: spec.method.to_ascii_uppercase(),
        path: spec.path.into_string(),
        headers: spec.headers.into_iter().collect(),
        body: spec.body.map(|body| body.to_string()),
        schedule: Schedule {
            attempts: delivery.max_attempts,
            age_max: delivery.max_age.as_ref().map_or(default.age_max, duration),
            base: delivery.base.as_ref().map_or(default.base, duration),
            cap: delivery.cap.as_ref().map_or(default.cap, duration),
            count: match delivery.count {
                Some(wire::FailureCounting::All) => FailureCounting::All,
                _ => FailureCounting::Answered,
            },
        },
        ordering: spec.ordering.map(ordering),
        enabled: spec.enabled,
        note: None,
        changed: Millis(0),
    }
}

/// The specification of a rule.
pub(crate) fn spec(rule: &domain::rule::Rule) -> RuleSpec {
    let Schedule { attempts, age_max, base, cap, count } = rule.schedule;
    let ordering = |ordering: &OrderingRule| OrderingSettings {
        key: ordering.key.clone().into(),
        on_dead_letter: Some(if ordering.hold { OnDeadLetter::Hold } else { OnDeadLetter::Continue }),
    };
    RuleSpec {
        name: rule.name.as_str().into(),
        event_type: rule.events.to_string().into(),
        service: rule.service.as_str().into(),
        filter: rule.filter.clone().map(Into::into),
        method: rule.method.clone(),
        path: rule.path.clone().into(),
        headers: rule.headers.iter().cloned().collect(),
        body: rule.body.as_deref().and_then(|body| serde_json::from_str(body).ok()),
        delivery: Some(DeliverySettings {
            max_attempts: attempts,
            max_age: Some(time(age_max).into()),
            base: Some(time(base).into()),
            cap: Some(time(cap).into()),
            count: Some(match count {
                FailureCounting::All => wire::FailureCounting::All,
                FailureCounting::Answered => wire::FailureCounting::Answered,
            }),
        }),
        ordering: rule.ordering.as_ref().map(ordering),
        enabled: rule.enabled,
    }
}

fn view(rule: &domain::rule::Rule) -> Rule {
    Rule {
        spec: spec(rule),
        version: rule.version,
        changed_at: rule.changed.to_string().into(),
        note: rule.note.clone(),
    }
}

pub(crate) async fn versions(cx: RequestContext, Path(name): Path<String>) -> ApiResult<Vec<Rule>> {
    let missing = || ApiError::missing("rule");
    let name = Slug::new(&name).map_err(|_| missing())?;
    let versions = cx.hub.registry.rule_versions(&name).await?;
    if !versions.first().is_some_and(|rule| rule.is_seen_by(&cx.caller)) {
        return Err(missing());
    }
    let seen = versions.iter().filter(|rule| rule.is_seen_by(&cx.caller));
    Ok(ApiReply::new(seen.map(view).collect()))
}

/// Handles `POST …/rules/{name}:enable`.
pub(crate) async fn enable(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<Rule> {
    let domain::rule::Rule { name, .. } = find(&cx, &target)?;
    Input::<NoInput>::optional(&body)?.finish()?;
    changed(&cx, cx.hub.registry.enable_rule(&cx, &name, true, None).await).await
}

/// Handles `POST …/rules/{name}:disable`.
pub(crate) async fn disable(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<Rule> {
    let domain::rule::Rule { name, .. } = find(&cx, &target)?;
    let Reason { reason } = Input::<Reason>::optional(&body)?.finish()?;
    changed(&cx, cx.hub.registry.enable_rule(&cx, &name, false, reason).await).await
}

/// Handles `POST …/rules/{name}:rollback`.
pub(crate) async fn roll_back(
    cx: RequestContext,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<Rule> {
    let domain::rule::Rule { name, .. } = find(&cx, &target)?;
    let RollbackInput { version } = Input::<RollbackInput>::optional(&body)?.finish()?;
    changed(&cx, cx.hub.registry.roll_back_rule(&cx, &name, version, expected(&headers)?).await).await
}
