//! Trying a rule: the exact request that it makes of an event.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::render::Request;
use seawall_hub_core::service::{BACKTEST_MAX, Backtest, Evaluation, sample_event};
use serde_json::{Map, Value, json};

use super::Caught;
use super::access::Caller;
use super::events;
use super::fields::Fields;
use super::reply::{missing, parse, refused, store_problem, success, wrong_fields};
use super::rules;
use crate::hub::Hub;

/// `POST …/rules:evaluate` with `{rule | ruleName, event | eventId}`.
pub(super) async fn evaluate(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Caught {
    let mut fields = Fields::new(parse(&body)?);
    let (rule, rule_name) = (fields.any("rule"), fields.text("ruleName"));
    let (event, event_id) = (fields.any("event"), fields.text("eventId"));
    if rule.is_some() == rule_name.is_some() {
        fields.wrong("rule", "say one of `rule`, a whole rule, and `ruleName`, one that is kept");
    }
    if event.is_some() == event_id.is_some() {
        fields.wrong("event", "say one of `event`, a sample, and `eventId`, one that is kept");
    }
    let problems = fields.end("rule, ruleName, event, eventId");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let rule = match (rule, rule_name) {
        (Some(rule), _) => match rules::read(rule, None) {
            Ok(rule) => rule,
            Err(problems) => return Ok(wrong_fields(&events::below("rule", problems))),
        },
        (None, name) => match rules::find(&hub, &caller, &name.unwrap_or_default()) {
            Some(rule) => rule,
            None => return Ok(missing("rule")),
        },
    };
    let event = match (event, event_id) {
        (Some(event), _) => match events::read(event.to_string().as_bytes(), true) {
            Ok(incoming) => sample_event(&incoming, hub.now()),
            Err(unread) => return Ok(wrong_fields(&events::below("event", unread.problems()))),
        },
        (None, _) if !caller.sees_all() => return Ok(events::of_all()),
        (None, id) => match events::find(&hub, &caller, &id.unwrap_or_default()).await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(missing("event")),
            Err(error) => return Ok(store_problem(&error)),
        },
    };
    Ok(match hub.evaluate(&rule, &event).await {
        Ok(evaluation) => {
            // A rule that somebody makes up may name any service.
            let service = hub.service(&rule.service).filter(|service| caller.sees(&service.name));
            let address = service.map(|service| service.address);
            success(StatusCode::OK, &shown(&evaluation, address.as_deref()))
        }
        Err(why) => refused(why, "rule"),
    })
}

/// `POST …/rules/{id}:backtest` with `{max, rule}`: the rule that is kept, or another one in its place.
pub(super) async fn backtest(hub: &Hub, caller: &Caller, name: &Slug, mut fields: Fields) -> Caught {
    if !caller.sees_all() {
        return Ok(events::of_all());
    }
    let most = fields.number("max", 1, BACKTEST_MAX as u64);
    let draft = fields.any("rule");
    let problems = fields.end("max, rule");
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    let rule = match draft {
        Some(draft) => match rules::read(draft, Some(name.as_str())) {
            Ok(rule) => rule,
            Err(problems) => return Ok(wrong_fields(&events::below("rule", problems))),
        },
        None => match hub.rule(name) {
            Some(rule) => rule,
            None => return Ok(missing("rule")),
        },
    };
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(100);
    let Backtest { events, filtered, unrenderable, requests, samples } =
        match hub.backtest(&rule, most, caller.sources()).await {
            Ok(test) => test,
            Err(why) => return Ok(refused(why, "rule")),
        };
    let address = hub.service(&rule.service).map(|service| service.address);
    let samples: Vec<Value> = samples
        .iter()
        .map(|(event, evaluation)| {
            super::services::merged(json!({"event": event}), shown(evaluation, address.as_deref()))
        })
        .collect();
    let data = json!({
        "events": events, "filtered": filtered, "unrenderable": unrenderable,
        "requests": requests, "samples": samples,
    });
    Ok(success(StatusCode::OK, &data))
}

fn shown(evaluation: &Evaluation, address: Option<&str>) -> Value {
    match evaluation {
        Evaluation::OtherKind => json!({"outcome": "otherType"}),
        Evaluation::Filtered(why) => json!({"outcome": "filtered", "reason": why}),
        Evaluation::Unrenderable(mistake) => {
            json!({"outcome": "unrenderable", "field": mistake.place, "reason": mistake.reason})
        }
        Evaluation::Request { request, order } => json!({
            "outcome": "request", "request": shown_request(request, address), "orderingKey": order,
        }),
    }
}

/// A request as it is on the wire, but for what is secret. A body that is JSON is shown as such, beside its exact bytes.
pub(super) fn shown_request(request: &Request, address: Option<&str>) -> Value {
    let headers: Map<String, Value> =
        request.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let bytes = request.body.bytes();
    json!({
        "method": request.method, "path": request.path, "headers": headers,
        "url": address.map(|address| format!("{}{}", address.trim_end_matches('/'), request.path)),
        "body": bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok()),
        "bodyText": bytes.map(|bytes| String::from_utf8_lossy(bytes)),
    })
}
