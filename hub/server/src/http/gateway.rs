//! `POST …/gateway/services/{name}:call`: a service is called now, later, or now and otherwise later.

use std::fmt::Write;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_http::header::{retry_depth, time_left};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::encode::{QUERY_VALUE, percent};
use seawall_hub_core::render::{RenderedRequest, RequestBody};
use seawall_hub_core::service::{CallError, CallMode, CallOutcome, CallResult, GatewayCall, QueuedCall};
use serde_json::{Value, json};

use super::call_response::{CallSummary, ROOM_BYTES, call_response};
use super::context::RequestContext;
use super::events::{said_key, trace_of};
use super::fields::{FieldError, Fields};
use super::reply::{missing, parse, problem, problem_about, store_problem, success_text, wrong_fields};
use super::services::circuit_word;
use super::{HandlerResult, split_verb, watch};
use crate::gateway::{GatewayRefusal, LastFailure};
use crate::hub::Server;
use crate::responses::HeldBytes;
use crate::spans::GatewaySpan;

const KNOWN: &str = "method, path, query, headers, body, bodyEncoding, mode, timeoutMs";
/// The longest time that somebody may wait for an answer.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// Handles the action `:call`.
pub(super) async fn act(
    cx: RequestContext,
    Path(name_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(super::nothing_here()) };
    if verb != "call" {
        return Ok(super::no_verb(verb, "call"));
    }
    let Some(service) = Slug::new(name).ok().filter(|name| cx.caller.sees(name)) else {
        return Ok(missing("service"));
    };
    let mut fields = Fields::new(parse(&body)?);
    let (mode, timeout) = (mode(&mut fields), fields.number("timeoutMs", 1, TIMEOUT_MS_MAX));
    let request = request(&mut fields);
    let problems = fields.end(KNOWN);
    if !problems.is_empty() {
        return Ok(wrong_fields(&problems));
    }
    // Before anything is sent: what nobody could hold is not asked for.
    let room = Some(cx.hub.responses()).filter(|memory| !memory.is_full());
    let Some(room) = room.and_then(|memory| memory.try_take(ROOM_BYTES)) else {
        return Ok(super::memory_full());
    };
    // Whoever calls has a deadline of its own, perhaps; the nearer one holds.
    let asked = timeout.map(Duration::from_millis).into_iter().chain(time_left(&headers)).min();
    let said = trace_of(&headers);
    let route = ("POST", "/api/v1/gateway/services/{name}:call");
    let own = || cx.trace.unwrap_or_else(super::fresh_trace);
    let passage = cx.hub.spans().passage(said.as_deref(), own, route, service.as_str());
    let call = GatewayCall {
        service: service.clone(),
        request,
        mode,
        key: said_key(&headers)?.map(ToOwned::to_owned),
        caller: cx.caller.name().to_string(),
        fresh_id: format!("call_{}", super::random_hex::<16>()),
        timeout: asked,
        retries_above: retry_depth(&headers),
        trace: passage.as_deref().map(GatewaySpan::text).or(said),
    };
    let answer = match cx.hub.gateway.call(&cx, call).await {
        Ok(CallOutcome::Now(answered)) => now(&cx, &service, answered, room),
        Ok(CallOutcome::Later(kept)) => success_text(StatusCode::ACCEPTED, &later(&cx.hub, &service, &kept)),
        Err(why) => not_called(why),
    };
    if let Some(passage) = passage {
        passage.answered(answer.status(), None);
    }
    Ok(answer)
}

fn mode(fields: &mut Fields) -> CallMode {
    match fields.text("mode").as_deref() {
        None | Some("sync") => CallMode::Sync,
        Some("async") => CallMode::Async,
        Some("sync_or_queue") => CallMode::SyncOrQueue,
        Some(_) => {
            fields.wrong("mode", "must be `sync`, `async` or `sync_or_queue`");
            CallMode::Sync
        }
    }
}

fn request(fields: &mut Fields) -> RenderedRequest {
    let method = fields.text("method").map_or_else(|| "GET".into(), |method| method.to_ascii_uppercase());
    let mut path = fields.text("path").unwrap_or_else(|| "/".into());
    query(fields, &mut path);
    let mut headers: Vec<(String, String)> =
        fields.pairs("headers").into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let said = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.clone());
    let encoding = fields.text("bodyEncoding");
    let body = match (fields.any("body"), encoding.as_deref()) {
        (_, Some(other)) if !["json", "text", "base64"].contains(&other) => {
            fields.wrong("bodyEncoding", "must be `json`, `text` or `base64`");
            RequestBody::Empty
        }
        (None, _) => RequestBody::Empty,
        (Some(Value::String(text)), Some("base64")) => {
            let decoded = STANDARD.decode(text);
            RequestBody::Own(
                decoded.map_err(|error| fields.wrong("body", error.to_string())).unwrap_or_default().into(),
            )
        }
        (Some(Value::String(text)), Some("text")) => RequestBody::Own(text.into()),
        // Whoever says that it is a text of another kind does not want it in quotes.
        (Some(Value::String(text)), None) if said.as_deref().is_some_and(|said| !is_json_type(said)) => {
            RequestBody::Own(text.into())
        }
        (Some(_), Some("text" | "base64")) => {
            fields.wrong("body", "must be a string with this `bodyEncoding`");
            RequestBody::Empty
        }
        (Some(value), _) => {
            if said.is_none() {
                headers.push(("content-type".into(), "application/json".into()));
            }
            RequestBody::Own(value.to_string().into())
        }
    };
    RenderedRequest { operation: method, target: path, attributes: headers, body }
}

/// `query` as an object, whose values may be lists, or as a text that is encoded already.
fn query(fields: &mut Fields, path: &mut String) {
    let encoded = match fields.any("query") {
        None => return,
        Some(Value::String(text)) => text.trim_start_matches('?').to_owned(),
        Some(Value::Object(pairs)) => {
            let mut out = String::new();
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
                            fields.wrong(
                                &format!("query.{name}"),
                                "must be a string, a number, a boolean or a list of them",
                            );
                            continue;
                        }
                    };
                    let and = if out.is_empty() { "" } else { "&" };
                    let (name, text) = (percent(&name, QUERY_VALUE), percent(&text, QUERY_VALUE));
                    let _ = write!(out, "{and}{name}={text}");
                }
            }
            out
        }
        Some(_) => return fields.wrong("query", "must be an object or a string"),
    };
    if !encoded.is_empty() {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&encoded);
    }
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
            let about = json!({
                "attempts": answered.attempts, "latencyMs": millis(answered.took), "circuit": circuit,
                "decidedBy": refusal.decided_by,
            });
            refused(&refusal, &about)
        }
    }
}

pub(super) fn refused(refusal: &GatewayRefusal, about: &Value) -> Response {
    let GatewayRefusal { status, code, message, retryable, .. } = refusal;
    let mut response = watch::may_pass(problem_about(*status, code, message, *retryable, about), *retryable);
    refusal.tell(response.headers_mut());
    response
}

/// `application/json`, `application/problem+json; charset=utf-8`.
pub(super) fn is_json_type(value: &str) -> bool {
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

fn later(hub: &Server, service: &Slug, kept: &QueuedCall) -> String {
    let deliveries: Vec<String> = kept.deliveries.iter().map(ToString::to_string).collect();
    let mut data = json!({
        "id": kept.event, "deliveries": deliveries, "delivery": deliveries.first(), "deduplicated": kept.deduplicated,
        "circuit": circuit_word(hub, service),
    });
    if let Some(tried) = &kept.tried {
        data["attempts"] = tried.attempts.into();
        data["latencyMs"] = millis(tried.took).into();
        data["why"] = match &tried.answer {
            Ok(whole) => format!("it answered {}", whole.status).into(),
            Err(error) => error.to_string().into(),
        };
    }
    data.to_string()
}

fn not_called(why: CallError) -> Response {
    match why {
        CallError::Missing => missing("service"),
        CallError::Paused => refused(&GatewayRefusal::paused(), &Value::Null),
        CallError::Wrong(problems) => {
            let problem = |(field, reason)| FieldError { field, reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        CallError::OtherContent => {
            let word = "the idempotency key was used for another call; use a new key";
            problem(StatusCode::UNPROCESSABLE_ENTITY, "otherContent", word, false)
        }
        CallError::Store(error) => store_problem(&error),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
