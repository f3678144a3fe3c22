//! `POST …/gateway/services/{name}:call`: a service is called now, later, or now and otherwise later.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seawall_http::header::{retry_depth, time_left};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::render::{Body, Request};
use seawall_hub_core::service::{Answered, Call, CallMode, Called, KeptCall, NotCalled};
use serde_json::{Value, json};

use super::access::Caller;
use super::call_response::{About, ROOM_BYTES, call_response};
use super::events::{said_key, trace_of};
use super::fields::{FieldProblem, Fields};
use super::reply::{
    TRACE, missing, parse, problem, problem_about, store_problem, success_text, wrong_fields,
};
use super::services::circuit_word;
use super::{Caught, split_verb, watch};
use crate::gateway::{Last, Refusal};
use crate::hub::Hub;
use crate::responses::HeldBytes;
use crate::spans::Passage;

const KNOWN: &str = "method, path, query, headers, body, bodyEncoding, mode, timeoutMs";
/// The longest time that somebody may wait for an answer.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// `:call`.
pub(super) async fn act(
    State(hub): State<Arc<Hub>>,
    Extension(caller): Extension<Caller>,
    Path(name_verb): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Caught {
    let Some((name, verb)) = split_verb(&name_verb) else { return Ok(super::nothing_here()) };
    if verb != "call" {
        return Ok(super::no_verb(verb, "call"));
    }
    let Some(service) = Slug::new(name).ok().filter(|name| caller.sees(name)) else {
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
    let room = Some(hub.responses()).filter(|memory| !memory.is_full());
    let Some(room) = room.and_then(|memory| memory.try_take(ROOM_BYTES)) else {
        return Ok(super::memory_full());
    };
    // Whoever calls has a deadline of its own, perhaps; the nearer one holds.
    let asked = timeout.map(Duration::from_millis).into_iter().chain(time_left(&headers)).min();
    let said = trace_of(&headers);
    let route = ("POST", "/api/v1/gateway/services/{name}:call");
    let own = || TRACE.try_with(Clone::clone).unwrap_or_default();
    let passage = hub.spans().passage(said.as_deref(), own, route, service.as_str());
    let call = Call {
        service: service.clone(),
        request,
        mode,
        key: said_key(&headers)?.map(ToOwned::to_owned),
        whose: caller.name().to_owned(),
        fresh_id: format!("call_{}", super::random_hex::<16>()),
        timeout: asked,
        retries_above: retry_depth(&headers),
        trace: passage.as_deref().map(Passage::text).or(said),
    };
    let answer = match hub.call(call).await {
        Ok(Called::Now(answered)) => now(&hub, &service, answered, room),
        Ok(Called::Later(kept)) => success_text(StatusCode::ACCEPTED, &later(&hub, &service, &kept)),
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
            fields.wrong("mode", "it is `sync`, `async` or `sync_or_queue`");
            CallMode::Sync
        }
    }
}

fn request(fields: &mut Fields) -> Request {
    let method = fields.text("method").map_or_else(|| "GET".into(), |method| method.to_ascii_uppercase());
    let mut path = fields.text("path").unwrap_or_else(|| "/".into());
    query(fields, &mut path);
    let mut headers: Vec<(String, String)> =
        fields.pairs("headers").into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let said = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.clone());
    let encoding = fields.text("bodyEncoding");
    let body = match (fields.any("body"), encoding.as_deref()) {
        (_, Some(other)) if !["json", "text", "base64"].contains(&other) => {
            fields.wrong("bodyEncoding", "it is `json`, `text` or `base64`");
            Body::Empty
        }
        (None, _) => Body::Empty,
        (Some(Value::String(text)), Some("base64")) => {
            let decoded = STANDARD.decode(text);
            Body::Own(
                decoded.map_err(|error| fields.wrong("body", error.to_string())).unwrap_or_default().into(),
            )
        }
        (Some(Value::String(text)), Some("text")) => Body::Own(text.into()),
        // Whoever says that it is a text of another kind does not want it in quotes.
        (Some(Value::String(text)), None) if said.as_deref().is_some_and(|said| !is_json_type(said)) => {
            Body::Own(text.into())
        }
        (Some(_), Some("text" | "base64")) => {
            fields.wrong("body", "with this `bodyEncoding` a text is expected");
            Body::Empty
        }
        (Some(value), _) => {
            if said.is_none() {
                headers.push(("content-type".into(), "application/json".into()));
            }
            Body::Own(value.to_string().into())
        }
    };
    Request { method, path, headers, body }
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
                                "a text, a number, a switch or a list of them is expected",
                            );
                            continue;
                        }
                    };
                    let and = if out.is_empty() { "" } else { "&" };
                    let _ = write!(out, "{and}{}={}", Encoded(&name), Encoded(&text));
                }
            }
            out
        }
        Some(_) => return fields.wrong("query", "an object or a text is expected"),
    };
    if !encoded.is_empty() {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&encoded);
    }
}

/// Percent-encoded, but for what is never in need of it.
struct Encoded<'a>(&'a str);

impl std::fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.bytes().try_for_each(|byte| {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                f.write_char(char::from(byte))
            } else {
                write!(f, "%{byte:02X}")
            }
        })
    }
}

fn now(hub: &Hub, service: &Slug, answered: Answered, room: HeldBytes) -> Response {
    match answered.answer {
        Ok(whole) => {
            let about = About {
                attempts: answered.attempts,
                latency_ms: millis(answered.took),
                circuit: circuit_word(hub, service),
            };
            call_response(&whole, &about, (room, answered.place))
        }
        Err(error) => {
            let last = error.last().map_or_else(Last::default, |last| Last {
                error: Some(&last.error),
                impossible: last.impossible,
                too_large: last.too_large,
                no_memory: last.no_memory,
            });
            let refusal = Refusal::of(&error, last);
            let about = json!({
                "attempts": answered.attempts, "latencyMs": millis(answered.took), "circuit": circuit_word(hub, service),
                "decidedBy": refusal.decided_by,
            });
            refused(&refusal, &about)
        }
    }
}

pub(super) fn refused(refusal: &Refusal, about: &Value) -> Response {
    let Refusal { status, code, message, retryable, .. } = refusal;
    let mut response = watch::may_pass(problem_about(*status, code, message, *retryable, about), *retryable);
    refusal.tell(response.headers_mut());
    response
}

/// `application/json`, `application/problem+json; charset=utf-8`.
pub(super) fn is_json_type(value: &str) -> bool {
    let kind = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

fn later(hub: &Hub, service: &Slug, kept: &KeptCall) -> String {
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

fn not_called(why: NotCalled) -> Response {
    match why {
        NotCalled::Missing => missing("service"),
        NotCalled::Paused => refused(&Refusal::paused(), &Value::Null),
        NotCalled::Wrong(problems) => {
            let problem = |(field, reason)| FieldProblem { field, reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        NotCalled::OtherContent => {
            let word = "the key was used for another call; use another key";
            problem(StatusCode::UNPROCESSABLE_ENTITY, "otherContent", word, false)
        }
        NotCalled::Store(error) => store_problem(&error),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
