//! `POST …/gateway/services/{name}:call`: a service is called now, later, or now and otherwise later.

mod call_response;

use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_api::{
    self as wire, BodyEncoding, CallFailure, CallInput, DeliveryId, FieldProblem, Headers, RequestPath,
};
use seawall_http::header::{retry_depth, time_left};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::encode::{QUERY_VALUE, percent};
use seawall_hub_core::render::{RenderedRequest, RequestBody};
use seawall_hub_core::service::{CallError, CallMode, CallOutcome, CallResult, GatewayCall, QueuedCall};
use serde_json::Value;

use self::call_response::{CallSummary, ROOM_BYTES, call_response};
use crate::gateway::{GatewayRefusal, LastFailure};
use crate::http::bridge::events::{said_key, trace_of};
use crate::http::context::{RequestContext, Target};
use crate::http::error::{ApiError, field_problems};
use crate::http::input::Input;
use crate::http::memory_full;
use crate::http::registry::services::circuit_word;
use crate::http::reply::ApiReply;
use crate::hub::Server;
use crate::responses::HeldBytes;
use crate::spans::GatewaySpan;

/// `POST …/gateway/services/{name}:call`. Its success is streamed, so it has no type here.
pub(crate) async fn call(
    cx: RequestContext,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let service = Slug::new(&target).ok().filter(|name| cx.caller.sees(name));
    let service = service.ok_or_else(|| ApiError::missing("service"))?;
    let (request, input) = read(Input::create(&body)?)?;
    // Before anything is sent: what nobody could hold is not asked for.
    let room = Some(&cx.hub.responses).filter(|memory| !memory.is_full());
    let room = room.and_then(|memory| memory.try_take(ROOM_BYTES)).ok_or_else(memory_full)?;
    // Whoever calls has a deadline of its own, perhaps; the nearer one holds.
    let asked = input.timeout_ms.map(Duration::from_millis).into_iter().chain(time_left(&headers)).min();
    let said = trace_of(&headers);
    let route = ("POST", "/api/v1/gateway/services/{name}:call");
    let own = || cx.trace.unwrap_or_else(crate::http::fresh_trace);
    let passage = cx.hub.spans.passage(said.as_deref(), own, route, service.as_str());
    let call = GatewayCall {
        service: service.clone(),
        request,
        mode: mode(input.mode.as_ref()),
        key: said_key(&headers)?.map(ToOwned::to_owned),
        caller: cx.caller.name().to_string(),
        fresh_id: format!("call_{}", crate::http::random_hex::<16>()),
        timeout: asked,
        retries_above: retry_depth(&headers),
        trace: passage.as_deref().map(GatewaySpan::text).or(said),
    };
    let answer = match cx.hub.gateway.call(&cx, call).await {
        Ok(CallOutcome::Now(answered)) => now(&cx, &service, answered, room),
        Ok(CallOutcome::Later(kept)) => ApiReply::accepted(later(&cx.hub, &service, &kept)).into_response(),
        Err(error) => ApiError::from(error).into_response(),
    };
    if let Some(passage) = passage {
        passage.answered(answer.status(), None);
    }
    Ok(answer)
}

fn mode(mode: Option<&wire::CallMode>) -> CallMode {
    match mode {
        Some(wire::CallMode::Async) => CallMode::Async,
        Some(wire::CallMode::SyncOrQueue) => CallMode::SyncOrQueue,
        _ => CallMode::Sync,
    }
}

/// Reads a call: the request that is made of it, and the rest.
fn read(mut input: Input<CallInput>) -> Result<(RenderedRequest, CallInput), Vec<FieldProblem>> {
    let query = input.take("query").map(encoded_query).transpose().unwrap_or_else(|problems| {
        input.also(field_problems(problems));
        None
    });
    let headers = input.get::<Headers>("headers").unwrap_or_default().into_iter();
    let mut headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let kind = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.clone());
    let body = body(&mut input, kind.as_deref());
    let mut input = input.finish()?;
    if kind.is_none() && matches!(body, OutgoingBody::Json(_)) {
        headers.push(("content-type".into(), "application/json".into()));
    }
    let mut target = input.path.take().map_or_else(|| "/".into(), RequestPath::into_string);
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        target.push(if target.contains('?') { '&' } else { '?' });
        target.push_str(&query);
    }
    let operation = input.method.take().map_or_else(|| "GET".into(), |method| method.to_ascii_uppercase());
    let body = match body {
        OutgoingBody::Empty => RequestBody::Empty,
        OutgoingBody::Json(bytes) | OutgoingBody::Other(bytes) => RequestBody::Own(bytes),
    };
    Ok((RenderedRequest { operation, target, attributes: headers, body }, input))
}

/// The body of a call as it is sent.
enum OutgoingBody {
    Empty,
    Json(Bytes),
    Other(Bytes),
}

fn body(input: &mut Input<CallInput>, kind: Option<&str>) -> OutgoingBody {
    let Some(body) = input.take("body") else { return OutgoingBody::Empty };
    match (body, input.get::<BodyEncoding>("bodyEncoding")) {
        (Value::String(text), Some(BodyEncoding::Base64)) => match STANDARD.decode(text) {
            Ok(bytes) => OutgoingBody::Other(bytes.into()),
            Err(error) => {
                input.wrong("body", error.to_string());
                OutgoingBody::Empty
            }
        },
        (Value::String(text), Some(BodyEncoding::Text)) => OutgoingBody::Other(text.into()),
        // Whoever says that it is a text of another kind does not want it in quotes.
        (Value::String(text), None) if kind.is_some_and(|kind| !is_json_type(kind)) => {
            OutgoingBody::Other(text.into())
        }
        (_, Some(BodyEncoding::Text | BodyEncoding::Base64)) => {
            input.wrong("body", "must be a string with this `bodyEncoding`");
            OutgoingBody::Empty
        }
        (value, _) => OutgoingBody::Json(value.to_string().into()),
    }
}

/// `query` as an object, whose values may be lists, or as a text that is encoded already.
fn encoded_query(query: Value) -> Result<String, Vec<(String, String)>> {
    let pairs = match query {
        Value::String(text) => return Ok(text.trim_start_matches('?').to_owned()),
        Value::Object(pairs) => pairs,
        _ => return Err(vec![("query".into(), "must be an object or a string".into())]),
    };
    let (mut encoded, mut problems) = (Vec::new(), Vec::new());
    for (name, value) in pairs {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => {
                    let reason = "must be a string, a number, a boolean or a list of them";
                    problems.push((format!("query.{name}"), reason.into()));
                    continue;
                }
            };
            encoded.push(format!("{}={}", percent(&name, QUERY_VALUE), percent(&text, QUERY_VALUE)));
        }
    }
    if problems.is_empty() { Ok(encoded.join("&")) } else { Err(problems) }
}

fn now(cx: &RequestContext, service: &Slug, answered: CallResult, room: HeldBytes) -> Response {
    let circuit = circuit_word(&cx.hub, service);
    match answered.answer {
        Ok(whole) => {
            let about = CallSummary {
                attempts: answered.attempts,
                latency_ms: millis(answered.took),
                circuit,
                trace: cx.trace,
            };
            call_response(&whole, &about, (room, answered.place))
        }
        Err(error) => {
            let last = error.last().map_or_else(LastFailure::default, |last| LastFailure {
                error: Some(&last.error),
                impossible: last.impossible,
                too_large: last.too_large,
                no_memory: last.no_memory,
            });
            let refusal = GatewayRefusal::of(&error, last);
            let failure = CallFailure {
                attempts: answered.attempts.into(),
                latency_ms: millis(answered.took),
                circuit: circuit.map(Into::into),
                decided_by: Some(refusal.decided_by.to_owned()),
            };
            ApiError::of_call(&refusal, Some(failure)).into_response()
        }
    }
}

/// `application/json`, `application/problem+json; charset=utf-8`.
pub(crate) fn is_json_type(value: &str) -> bool {
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

fn later(hub: &Server, service: &Slug, kept: &QueuedCall) -> wire::QueuedCall {
    let deliveries: Vec<DeliveryId> = kept.deliveries.iter().map(|id| id.to_string().into()).collect();
    let tried = kept.tried.as_ref();
    wire::QueuedCall {
        id: kept.event.clone(),
        delivery: deliveries.first().cloned(),
        deliveries,
        deduplicated: kept.deduplicated,
        circuit: circuit_word(hub, service).map(Into::into),
        attempts: tried.map(|tried| tried.attempts.into()),
        latency_ms: tried.map(|tried| millis(tried.took)),
        why: tried.map(|tried| match &tried.answer {
            Ok(whole) => format!("it answered {}", whole.status),
            Err(error) => error.to_string(),
        }),
    }
}

impl From<CallError> for ApiError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Missing => ApiError::missing("service"),
            CallError::Paused => ApiError::of_call(&GatewayRefusal::paused(), None),
            CallError::Wrong(problems) => field_problems(problems).into(),
            CallError::OtherContent => {
                let word = "the idempotency key was used for another call; use a new key";
                ApiError::new("otherContent", word)
            }
            CallError::Store(error) => error.into(),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
