//! Trying a rule: the exact request that it makes of an event.

use axum::body::Bytes;
use axum::http::StatusCode;
use seawall_api::{Backtest, BacktestInput, BacktestSample, EvaluateInput, Evaluation, Request};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{self, BacktestReport, sample_event};

use crate::http::HandlerResult;
use crate::http::bridge::{events, incoming};
use crate::http::context::RequestContext;
use crate::http::input::Input;
use crate::http::registry::rules::{self, RuleInput};
use crate::http::reply::{missing, refused, store_problem, success, wrong_fields};

/// The number of events that a rule is tested with if the request does not state one.
const BACKTEST_DEFAULT: usize = 100;

/// `POST …/rules:evaluate` with `{rule | ruleName, event | eventId}`.
pub(in crate::http) async fn evaluate(cx: RequestContext, body: Bytes) -> HandlerResult {
    let mut input = Input::<EvaluateInput>::create(&body)?;
    if input.raw("rule").is_some() == input.raw("ruleName").is_some() {
        input.wrong("rule", "set exactly one of `rule`, a whole rule, and `ruleName`, a stored rule");
    }
    if input.raw("event").is_some() == input.raw("eventId").is_some() {
        input.wrong("event", "set exactly one of `event`, a sample, and `eventId`, a stored event");
    }
    let (rule, event) = (input.take("rule"), input.take("event"));
    let EvaluateInput { rule_name, event_id, .. } = input.finish()?;
    let rule = match (rule, rule_name) {
        (Some(rule), _) => {
            rules::read(RuleInput::of(rule)).map_err(|problems| incoming::below("rule", problems))?
        }
        (None, name) => match rules::find(&cx.hub, &cx.caller, name.unwrap_or_default().as_str()) {
            Some(rule) => rule,
            None => return Ok(missing("rule")),
        },
    };
    let event = match (event, event_id) {
        (Some(event), _) => match incoming::read(event.to_string().as_bytes(), true) {
            Ok(incoming) => sample_event(&incoming, cx.hub.now()),
            Err(unread) => return Ok(wrong_fields(&incoming::below("event", unread.problems()))),
        },
        (None, _) if !cx.caller.sees_all() => return Ok(events::of_all()),
        (None, id) => match events::find(&cx.hub, &cx.caller, id.unwrap_or_default().as_str()).await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(missing("event")),
            Err(error) => return Ok(store_problem(&error)),
        },
    };
    Ok(match cx.hub.registry.evaluate(&rule, &event).await {
        Ok(evaluation) => {
            // A rule that somebody makes up may name any service.
            let service =
                cx.hub.registry.service(&rule.service).filter(|service| cx.caller.sees(&service.name));
            let address = service.map(|service| service.address);
            success(StatusCode::OK, &view(&evaluation, address.as_deref()))
        }
        Err(why) => refused(why, "rule"),
    })
}

/// `POST …/rules/{name}:backtest`: tests the stored rule, or another one in its place.
pub(in crate::http) async fn backtest(cx: &RequestContext, name: &Slug, body: &Bytes) -> HandlerResult {
    if !cx.caller.sees_all() {
        return Ok(events::of_all());
    }
    let mut input = Input::<BacktestInput>::optional(body)?;
    let draft = input.take("rule");
    let BacktestInput { max, .. } = input.finish()?;
    let rule = match draft {
        Some(draft) => rules::read(RuleInput::named(draft, name.as_str()))
            .map_err(|problems| incoming::below("rule", problems))?,
        None => match cx.hub.registry.rule(name) {
            Some(rule) => rule,
            None => return Ok(missing("rule")),
        },
    };
    let most = max.map_or(BACKTEST_DEFAULT, |max| max as usize);
    let BacktestReport { events, filtered, unrenderable, requests, samples } =
        match cx.hub.registry.backtest(&rule, most, cx.caller.sources()).await {
            Ok(test) => test,
            Err(why) => return Ok(refused(why, "rule")),
        };
    let address = cx.hub.registry.service(&rule.service).map(|service| service.address);
    let sample = |(event, evaluation): &(String, service::Evaluation)| BacktestSample {
        event: event.clone().into(),
        evaluation: view(evaluation, address.as_deref()),
    };
    let data = Backtest {
        events: events as u64,
        filtered: filtered as u64,
        unrenderable: unrenderable as u64,
        requests: requests as u64,
        samples: samples.iter().map(sample).collect(),
    };
    Ok(success(StatusCode::OK, &data))
}

fn view(evaluation: &service::Evaluation, address: Option<&str>) -> Evaluation {
    match evaluation {
        service::Evaluation::OtherKind => Evaluation::OtherType,
        service::Evaluation::Filtered(why) => Evaluation::Filtered { reason: why.clone() },
        service::Evaluation::Unrenderable(mistake) => {
            Evaluation::Unrenderable { field: mistake.place.clone(), reason: mistake.reason.clone() }
        }
        service::Evaluation::Request { request, order } => {
            Evaluation::Request { request: request_view(request, address), ordering_key: order.clone() }
        }
    }
}

/// A request as it is on the wire, but for what is secret. A body that is JSON is shown as such, beside its exact bytes.
pub(in crate::http) fn request_view(request: &RenderedRequest, address: Option<&str>) -> Request {
    let bytes = request.body.bytes();
    Request {
        method: request.operation.clone(),
        path: request.target.clone(),
        headers: request.attributes.iter().cloned().collect(),
        url: address.map(|address| format!("{}{}", address.trim_end_matches('/'), request.target)),
        body: bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default(),
        body_text: bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
    }
}
