//! Trying a rule: the exact request that it makes of an event.

use axum::body::Bytes;
use seawall_api::{Backtest, BacktestInput, BacktestSample, EvaluateInput, Evaluation, Request};
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::render::RenderedRequest;
use seawall_hub_core::service::{self, BacktestReport, sample_event};

use super::resource::find;
use super::rules::{self, RuleInput};
use crate::http::bridge::cloud_events::below;
use crate::http::bridge::events;
use crate::http::context::{RequestContext, Target};
use crate::http::error::refused;
use crate::http::input::Input;
use crate::http::reply::{ApiReply, ApiResult};

/// The number of events that a rule is tested with if the request does not state one.
const BACKTEST_DEFAULT: usize = 100;

/// `POST …/rules:evaluate` with `{rule | ruleName, event | eventId}`.
pub(crate) async fn evaluate(cx: RequestContext, body: Bytes) -> ApiResult<Evaluation> {
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
        (Some(rule), _) => rules::read(RuleInput::of(rule)).map_err(|problems| below("rule", problems))?,
        (None, name) => find(&cx, name.unwrap_or_default().as_str())?,
    };
    let event = match (event, event_id) {
        (Some(event), _) => {
            let read = events::read(event.to_string().as_bytes(), true);
            let read = read.map_err(|unread| below("event", unread.problems()))?;
            sample_event(&read, cx.hub.now())
        }
        (None, id) => {
            events::check_services(&cx.caller)?;
            events::find(&cx, id.unwrap_or_default().as_str()).await?
        }
    };
    let evaluation = cx.hub.registry.evaluate(&rule, &event).await.map_err(refused("rule"))?;
    // A rule that somebody makes up may name any service.
    let service = cx.hub.registry.service(&rule.service).filter(|service| cx.caller.sees(&service.name));
    let address = service.map(|service| service.address);
    Ok(ApiReply::new(view(&evaluation, address.as_deref())))
}

/// `POST …/rules/{name}:backtest`: tests the stored rule, or another one in its place.
pub(crate) async fn backtest(cx: RequestContext, target: Target, body: Bytes) -> ApiResult<Backtest> {
    let stored: Rule = find(&cx, &target)?;
    events::check_services(&cx.caller)?;
    let mut input = Input::<BacktestInput>::optional(&body)?;
    let draft = input.take("rule");
    let BacktestInput { max, .. } = input.finish()?;
    let rule = match draft {
        Some(draft) => {
            let draft = rules::read(RuleInput::named(draft, stored.name.as_str()));
            draft.map_err(|problems| below("rule", problems))?
        }
        None => stored,
    };
    let most = max.map_or(BACKTEST_DEFAULT, |max| max as usize);
    let report = cx.hub.registry.backtest(&rule, most, cx.caller.sources()).await;
    let BacktestReport { events, filtered, unrenderable, requests, samples } =
        report.map_err(refused("rule"))?;
    let address = cx.hub.registry.service(&rule.service).map(|service| service.address);
    let sample = |(event, evaluation): &(String, service::Evaluation)| BacktestSample {
        event: event.clone().into(),
        evaluation: view(evaluation, address.as_deref()),
    };
    Ok(ApiReply::new(Backtest {
        events: events as u64,
        filtered: filtered as u64,
        unrenderable: unrenderable as u64,
        requests: requests as u64,
        samples: samples.iter().map(sample).collect(),
    }))
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
pub(crate) fn request_view(request: &RenderedRequest, address: Option<&str>) -> Request {
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
