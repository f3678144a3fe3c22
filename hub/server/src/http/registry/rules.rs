//! The routes of rules.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{
    self as wire, DeleteQuery, Deleted, DeliverySettings, DurationText, Headers, OnDeadLetter,
    OrderingSettings, Reason, RollbackInput, Rule, RuleSpec,
};
use seawall_hub_core::domain;
use seawall_hub_core::domain::delivery::{FailureCounting, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::OrderingRule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::{Millis, written as time};
use seawall_hub_core::render::{RequestTemplate, RuleText};
use seawall_hub_core::service::ChangeKey;
use serde_json::Value;

use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::fields::FieldError;
use crate::http::input::{Input, NoInput, duration, retried, slug};
use crate::http::once::{change_key, refused_or};
use crate::http::query::QueryInput;
use crate::http::registry::services::pending;
use crate::http::reply::{expected, missing, parse, refused, store_problem, success, versioned};
use crate::http::{HandlerResult, split_verb};
use crate::hub::Server;

pub(in crate::http) async fn put(cx: RequestContext, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let once = change_key(&headers, &cx.caller, "rule", &body)?;
    keep(&cx, expected(&headers)?, Input::create(&body)?, once).await
}

pub(in crate::http) async fn replace(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    keep(&cx, expected(&headers)?, Input::put(&body, &name)?, None).await
}

/// Changes some fields; those that are omitted stay.
pub(in crate::http) async fn change(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let (stated, change) = (expected(&headers)?, parse(&body)?);
    let (cx, name, change) = (&cx, &*name, &change);
    retried(stated, || async move {
        let Some(rule) = find(&cx.hub, &cx.caller, name) else { return Ok(missing("rule")) };
        let input = Input::patch(&spec(&rule), change.clone(), name);
        keep(cx, stated.or(Some(rule.version)), input, None).await
    })
    .await
}

async fn keep(
    cx: &RequestContext,
    expected: Option<u64>,
    mut input: RuleInput,
    once: Option<ChangeKey>,
) -> HandlerResult {
    let version = input.version().filter(|version| *version > 0);
    check(&mut input);
    if input.has_problems() {
        let slug = |field: &str| input.get::<String>(field).and_then(|name| Slug::new(&name).ok());
        let (name, service) = (slug("name"), slug("service"));
        input.also(cx.hub.registry.problems_of_names(name.as_ref(), service.as_ref()));
    }
    let rule = to_domain(input.finish()?);
    let before = cx.hub.registry.rule(&rule.name);
    let foreign = |rule: &domain::rule::Rule| !cx.caller.sees(&rule.service);
    if foreign(&rule) || before.as_ref().is_some_and(foreign) {
        return Ok(missing("rule"));
    }
    let is_new = before.is_none();
    let name = rule.name.clone();
    Ok(match cx.hub.registry.put_rule_once(cx, rule, expected.or(version), once).await {
        Ok(kept) => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &view(&kept))
        }
        Err(why) => refused_or(why, "rule", |status, _| {
            cx.hub.registry.rule(&name).map(|rule| versioned(status, rule.version, &view(&rule)))
        }),
    })
}

/// A rule to be read.
pub(in crate::http) type RuleInput = Input<RuleSpec, Rule>;

/// Reads a rule that is not stored, or finds every problem that it has in itself.
pub(in crate::http) fn read(mut input: RuleInput) -> Result<domain::rule::Rule, Vec<FieldError>> {
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
    input.also(mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)));
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
pub(in crate::http) fn spec(rule: &domain::rule::Rule) -> RuleSpec {
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

/// A rule that the caller may see: one whose service it may see.
pub(in crate::http) fn find(hub: &Server, caller: &Caller, name: &str) -> Option<domain::rule::Rule> {
    hub.registry.rule(&Slug::new(name).ok()?).filter(|rule| caller.sees(&rule.service))
}

pub(in crate::http) async fn list(cx: RequestContext) -> Response {
    let rules = cx.hub.registry.rules();
    let seen = rules.iter().filter(|rule| cx.caller.sees(&rule.service));
    success(StatusCode::OK, &seen.map(view).collect::<Vec<_>>())
}

pub(in crate::http) async fn get(cx: RequestContext, Path(name): Path<String>) -> Response {
    match find(&cx.hub, &cx.caller, &name) {
        Some(rule) => versioned(StatusCode::OK, rule.version, &view(&rule)),
        None => missing("rule"),
    }
}

pub(in crate::http) async fn versions(cx: RequestContext, Path(name): Path<String>) -> Response {
    let Ok(name) = Slug::new(&name) else { return missing("rule") };
    match cx.hub.registry.rule_versions(&name).await {
        Ok(versions) if !versions.first().is_some_and(|rule| cx.caller.sees(&rule.service)) => {
            missing("rule")
        }
        Ok(versions) => {
            let seen = versions.iter().filter(|rule| cx.caller.sees(&rule.service));
            success(StatusCode::OK, &seen.map(view).collect::<Vec<_>>())
        }
        Err(error) => store_problem(&error),
    }
}

pub(in crate::http) async fn delete(
    cx: RequestContext,
    Path(name): Path<String>,
    QueryInput(query): QueryInput<DeleteQuery>,
    headers: HeaderMap,
) -> HandlerResult {
    let Some(domain::rule::Rule { name, .. }) = find(&cx.hub, &cx.caller, &name) else {
        return Ok(missing("rule"));
    };
    Ok(match cx.hub.registry.delete_rule(&cx, &name, expected(&headers)?, pending(&query)).await {
        Ok(()) => success(StatusCode::OK, &Deleted { name: name.as_str().into(), deleted: true }),
        Err(why) => refused(why, "rule"),
    })
}

/// `POST …/rules/{id}:backtest`, `:enable`, `:disable`, `:rollback`.
pub(in crate::http) async fn act(
    cx: RequestContext,
    Path(name_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(crate::http::nothing_here()) };
    let Some(domain::rule::Rule { name, .. }) = find(&cx.hub, &cx.caller, name) else {
        return Ok(missing("rule"));
    };
    let done = match verb {
        "enable" => {
            Input::<NoInput>::optional(&body)?.finish()?;
            cx.hub.registry.enable_rule(&cx, &name, true, None).await
        }
        "disable" => {
            let Reason { reason } = Input::<Reason>::optional(&body)?.finish()?;
            cx.hub.registry.enable_rule(&cx, &name, false, reason).await
        }
        "rollback" => {
            let RollbackInput { version } = Input::<RollbackInput>::optional(&body)?.finish()?;
            cx.hub.registry.roll_back_rule(&cx, &name, version, expected(&headers)?).await
        }
        "backtest" => return crate::http::registry::evaluate::backtest(&cx, &name, &body).await,
        _ => return Ok(crate::http::no_verb(verb, "backtest, enable, disable, rollback")),
    };
    Ok(match done {
        Ok(rule) => versioned(StatusCode::OK, rule.version, &view(&rule)),
        Err(why) => refused(why, "rule"),
    })
}
