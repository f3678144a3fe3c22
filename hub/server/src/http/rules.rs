//! Rules.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::delivery::{Count, Schedule};
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::rule::{Ordering, Rule};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::Store;
use seawall_hub_core::service::compile;
use serde_json::{Map, Value, json};

use super::access::Caller;
use super::alert_rules::time;
use super::fields::{FieldProblem, Fields};
use super::query::Query;
use super::reply::{expected, missing, parse, refused, store_problem, success, versioned, wrong_fields};
use super::services::{merged, patched, pending};
use super::{Caught, split_verb};
use crate::hub::Hub;

const KNOWN: &str =
    "name, eventType, filter, service, method, path, headers, body, delivery, ordering, enabled";

pub(super) async fn put(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &caller, None, expected(&headers)?, parse(&body)?).await
}

pub(super) async fn replace(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    keep(&hub, &caller, Some(&name), expected(&headers)?, parse(&body)?).await
}

/// What is not named stays as it is.
pub(super) async fn change(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let (said, change) = (expected(&headers)?, parse(&body)?);
    loop {
        let Some(rule) = find(&hub, &caller, &name) else { return Ok(missing("rule")) };
        let seen = said.unwrap_or(rule.version);
        let answer = keep(
            &hub,
            &caller,
            Some(&name),
            Some(seen),
            patched(written(&rule), change.clone(), &["delivery", "headers", "ordering"]),
        )
        .await?;
        // Whoever does not say which version they have seen means the newest, also if it came this moment.
        if said.is_some() || answer.status() != StatusCode::PRECONDITION_FAILED {
            return Ok(answer);
        }
    }
}

async fn keep(hub: &Hub, caller: &Caller, named: Option<&str>, expected: Option<u64>, body: Value) -> Caught {
    let (rule, mut problems) = draft(body, named);
    if !problems.is_empty() {
        also(&mut problems, hub.problems_of(&rule));
        return Ok(wrong_fields(&problems));
    }
    let before = hub.rule(&rule.name);
    let foreign = |rule: &Rule| !caller.sees(&rule.service);
    if foreign(&rule) || before.as_ref().is_some_and(foreign) {
        return Ok(missing("rule"));
    }
    let is_new = before.is_none();
    let expected = expected.or(Some(rule.version).filter(|version| *version > 0));
    Ok(match hub.put_rule(rule, expected).await {
        Ok(kept) => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            versioned(status, kept.version, &shown(&kept))
        }
        Err(why) => refused(why, "rule"),
    })
}

/// A rule as somebody has written it, or all that is wrong with it in itself. `named` is what the path says.
pub(super) fn read(body: Value, named: Option<&str>) -> Result<Rule, Vec<FieldProblem>> {
    let (rule, mut problems) = draft(body, named);
    let mistakes = compile(&rule).err().unwrap_or_default();
    also(&mut problems, mistakes.into_iter().map(|mistake| (mistake.place, mistake.reason)).collect());
    if problems.is_empty() { Ok(rule) } else { Err(problems) }
}

/// What else is wrong, so that whoever wrote it learns all of it at once. What is known of a field already is not said again.
fn also(problems: &mut Vec<FieldProblem>, more: Vec<(String, String)>) {
    let known: Vec<String> = problems.iter().map(|problem| problem.field.clone()).collect();
    let new = more.into_iter().filter(|(field, _)| !known.contains(field));
    problems.extend(new.map(|(field, reason)| FieldProblem { field, reason }));
}

/// A rule as far as it can be read, and what can't. A name or a service that can't be read is another one in it, so it is good
/// for nothing but to find what else is wrong.
fn draft(body: Value, named: Option<&str>) -> (Rule, Vec<FieldProblem>) {
    let mut fields = Fields::new(body);
    let name = fields.name(named);
    let (events, service) = (fields.needed("eventType"), fields.needed("service"));
    let events = fields.parsed("eventType", &events, Pattern::new);
    let service = fields.parsed("service", &service, Slug::new);
    let filter = fields.text("filter");
    let method = fields.text("method").unwrap_or_else(|| "POST".into()).to_ascii_uppercase();
    let path = fields.text("path").unwrap_or_else(|| "/".into());
    let headers = fields.pairs("headers");
    let body = fields.any("body").map(|body| body.to_string());
    let schedule = schedule(&mut fields);
    let ordering = ordering(&mut fields);
    let enabled = fields.switch("enabled", true);
    // What is shown can be written back.
    let version = fields.number("version", 0, u64::MAX).unwrap_or(0);
    for shown in ["changedAt", "note"] {
        fields.any(shown);
    }
    let unread = || Slug::new("unread").expect("it is a name");
    let rule = Rule {
        name: name.unwrap_or_else(unread),
        version,
        events: events.unwrap_or(Pattern::Everything),
        filter,
        service: service.unwrap_or_else(unread),
        method,
        path,
        headers,
        body,
        schedule,
        ordering,
        enabled,
        note: None,
        changed: Millis(0),
    };
    (rule, fields.end(KNOWN))
}

fn schedule(fields: &mut Fields) -> Schedule {
    let mut schedule = Schedule::default();
    let Some(mut delivery) = fields.group("delivery") else { return schedule };
    schedule.attempts =
        delivery.number("maxAttempts", 1, 1_000).and_then(|attempts| u32::try_from(attempts).ok());
    schedule.age_max = delivery.duration("maxAge").unwrap_or(schedule.age_max);
    schedule.base = delivery.duration("base").unwrap_or(schedule.base);
    schedule.cap = delivery.duration("cap").unwrap_or(schedule.cap);
    // What is kept is in milliseconds: less than one would be none.
    if schedule.base.as_millis() == 0 || schedule.base > schedule.cap {
        delivery.wrong("base", "it is at least `1ms`, and no more than `cap`");
    }
    schedule.count = match delivery.text("count").as_deref() {
        None | Some("answered") => Count::Answered,
        Some("all") => Count::All,
        Some(_) => {
            delivery.wrong("count", "it is `answered` or `all`");
            Count::Answered
        }
    };
    fields.within("delivery", delivery, "maxAttempts, maxAge, base, cap, count");
    schedule
}

fn ordering(fields: &mut Fields) -> Option<Ordering> {
    let mut group = fields.group("ordering")?;
    let key = group.needed("key");
    let hold = match group.text("onDeadLetter").as_deref() {
        None | Some("continue") => false,
        Some("hold") => true,
        Some(_) => {
            group.wrong("onDeadLetter", "it is `continue` or `hold`");
            false
        }
    };
    fields.within("ordering", group, "key, onDeadLetter");
    Some(Ordering { key, hold })
}

/// As somebody would write it.
pub(super) fn written(rule: &Rule) -> Value {
    let headers: Map<String, Value> =
        rule.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let Schedule { attempts, age_max, base, cap, count } = rule.schedule;
    let ordering = rule.ordering.as_ref().map(|ordering| {
        let word = if ordering.hold { "hold" } else { "continue" };
        json!({"key": ordering.key, "onDeadLetter": word})
    });
    json!({
        "name": rule.name.as_str(), "eventType": rule.events.to_string(), "filter": rule.filter,
        "service": rule.service.as_str(), "method": rule.method, "path": rule.path, "headers": headers,
        "body": rule.body.as_deref().and_then(|body| serde_json::from_str::<Value>(body).ok()),
        "delivery": {
            "maxAttempts": attempts, "maxAge": time(age_max), "base": time(base), "cap": time(cap),
            "count": if count == Count::All { "all" } else { "answered" },
        },
        "ordering": ordering, "enabled": rule.enabled,
    })
}

fn shown(rule: &Rule) -> Value {
    let more = json!({"version": rule.version, "changedAt": rule.changed.to_string(), "note": rule.note});
    merged(written(rule), more)
}

/// A rule that the caller may see: one whose service it may see.
pub(super) fn find(hub: &Hub, caller: &Caller, name: &str) -> Option<Rule> {
    hub.rule(&Slug::new(name).ok()?).filter(|rule| caller.sees(&rule.service))
}

pub(super) async fn list(State(hub): State<Arc<Hub>>, Extension(caller): Extension<Caller>) -> Response {
    let rules = hub.rules();
    let seen = rules.iter().filter(|rule| caller.sees(&rule.service));
    success(StatusCode::OK, &seen.map(shown).collect())
}

pub(super) async fn get(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match find(&hub, &caller, &name) {
        Some(rule) => versioned(StatusCode::OK, rule.version, &shown(&rule)),
        None => missing("rule"),
    }
}

pub(super) async fn versions(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    let Ok(name) = Slug::new(&name) else { return missing("rule") };
    match hub.store().rule_versions(&name).await {
        Ok(versions) if !versions.first().is_some_and(|rule| caller.sees(&rule.service)) => missing("rule"),
        Ok(versions) => {
            let seen = versions.iter().filter(|rule| caller.sees(&rule.service));
            success(StatusCode::OK, &seen.map(shown).collect())
        }
        Err(error) => store_problem(&error),
    }
}

pub(super) async fn delete(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Caught {
    let mut query = Query::new(query.as_deref());
    let pending = pending(&mut query);
    query.end("pending")?;
    let Some(Rule { name, .. }) = find(&hub, &caller, &name) else { return Ok(missing("rule")) };
    Ok(match hub.delete_rule(&name, expected(&headers)?, pending).await {
        Ok(()) => success(StatusCode::OK, &json!({"name": name.as_str(), "deleted": true})),
        Err(why) => refused(why, "rule"),
    })
}

/// `POST …/rules/{id}:backtest`, `:enable`, `:disable`, `:rollback`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(super::nothing_here()) };
    let Some(Rule { name, .. }) = find(&hub, &caller, name) else { return Ok(missing("rule")) };
    let mut fields = Fields::new(if body.is_empty() { json!({}) } else { parse(&body)? });
    let done = match verb {
        "enable" => {
            let problems = fields.end("none");
            if !problems.is_empty() {
                return Ok(wrong_fields(&problems));
            }
            hub.enable_rule(&name, true, None).await
        }
        "disable" => {
            let note = fields.text("reason");
            let problems = fields.end("reason");
            if !problems.is_empty() {
                return Ok(wrong_fields(&problems));
            }
            hub.enable_rule(&name, false, note).await
        }
        "rollback" => {
            let version = fields.number("version", 1, u64::MAX);
            if version.is_none() {
                fields.wrong("version", "say which version it goes back to");
            }
            let problems = fields.end("version");
            let Some(version) = version.filter(|_| problems.is_empty()) else {
                return Ok(wrong_fields(&problems));
            };
            hub.roll_back_rule(&name, version, expected(&headers)?).await
        }
        "backtest" => return super::evaluate::backtest(&hub, &caller, &name, fields).await,
        _ => return Ok(super::no_verb(verb, "backtest, enable, disable, rollback")),
    };
    Ok(match done {
        Ok(rule) => versioned(StatusCode::OK, rule.version, &shown(&rule)),
        Err(why) => refused(why, "rule"),
    })
}
