//! Events in, one or many, as JSON of our own or as CloudEvents.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_api::{self as wire, EventContent, EventPage, EventQuery, Refusal, RefusalCode, RefusedEvent};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::Pattern;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::{EventFilter, StoreError};
use seawall_hub_core::service::{AcceptError, AcceptedEvent, IncomingEvent};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::incoming::{below, cloud_events, read};
use crate::http::HandlerResult;
use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::fields::FieldError;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::raw::RawObject;
use crate::http::reply::{missing, not_json, problem, store_problem, success, success_text, wrong_fields};
use crate::hub::Server;
use crate::source::cloudevents::{BATCH_MAX, CloudEventMode};

const KEY: &str = "idempotency-key";
const KEY_MAX: usize = 200;

pub(in crate::http) async fn accept(
    mut cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    cx.refresh();
    let key = idempotency_key(&headers, &cx.caller)?;
    let mut incoming = match CloudEventMode::of(&headers) {
        None => {
            let named = !headers.contains_key(KEY);
            read(&body, named).map_err(|unread| unread.response())?
        }
        Some(mode) => {
            let mut events = cloud_events(mode, &headers, &body)?;
            match events.pop() {
                Some(event) if events.is_empty() => event,
                event => return batch(&cx, events.into_iter().chain(event).collect()).await,
            }
        }
    };
    if !cx.caller.sees_source(&incoming.source) {
        return Ok(cx.caller.source_refused(&incoming.source));
    }
    incoming.key = key;
    incoming.trace = trace_of(&headers).or(incoming.trace).or_else(|| own_trace(&cx));
    Ok(match cx.hub.bridge.accept(&cx, incoming).await {
        Ok(accepted) => success_text(StatusCode::ACCEPTED, &shown(&accepted)),
        Err(error) => not_accepted(&error),
    })
}

/// `POST …/events:batchCreate` with `{events: […]}`, or a batch of CloudEvents.
pub(in crate::http) async fn accept_batch(
    mut cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> HandlerResult {
    cx.refresh();
    if let Some(mode) = CloudEventMode::of(&headers) {
        return batch(&cx, cloud_events(mode, &headers, &body)?).await;
    }
    let mut fields = RawObject::read(&body).map_err(|error| not_json(&error))?;
    let list = fields.raw("events").and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list).ok());
    let mut incoming = Vec::new();
    match list {
        Some(list) if list.len() <= BATCH_MAX => {
            for (at, event) in list.into_iter().enumerate() {
                match read(event.get().as_bytes(), true) {
                    Ok(event) => incoming.push(event),
                    Err(unread) => {
                        for FieldError { field, reason } in below(&format!("events[{at}]"), unread.problems())
                        {
                            fields.wrong(&field, reason);
                        }
                    }
                }
            }
        }
        Some(_) => fields.wrong("events", format!("must have at most {BATCH_MAX} events")),
        None => fields.wrong("events", "must be a list of events"),
    }
    let problems = fields.end("events");
    if !problems.is_empty() {
        // Nothing of a batch with mistakes is kept, so that it can be sent again as a whole.
        return Ok(wrong_fields(&problems));
    }
    let trace = trace_of(&headers);
    for event in &mut incoming {
        event.trace.clone_from(&trace);
    }
    batch(&cx, incoming).await
}

/// Each for itself. If the store did not take one, the whole is to be sent again: those that it took are known then.
async fn batch(cx: &RequestContext, mut incoming: Vec<IncomingEvent>) -> HandlerResult {
    if let Some(event) = incoming.iter().find(|event| !cx.caller.sees_source(&event.source)) {
        return Ok(cx.caller.source_refused(&event.source));
    }
    for event in &mut incoming {
        event.trace = event.trace.take().or_else(|| own_trace(cx));
    }
    let ids: Vec<String> = incoming.iter().map(|event| event.id.clone()).collect();
    let answers = cx.hub.bridge.accept_all(cx, incoming).await;
    if let Some(AcceptError::Store(error)) = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .find(|error| matches!(error, AcceptError::Store(_)))
    {
        return Ok(store_problem(error));
    }
    let results: Vec<String> = answers
        .iter()
        .zip(ids)
        .map(|(answer, id)| match answer {
            Ok(accepted) => shown(accepted),
            Err(error) => json!(refused_event(id, error)).to_string(),
        })
        .collect();
    let refused = answers.iter().filter(|answer| answer.is_err()).count();
    let data = format!(
        r#"{{"accepted":{},"refused":{refused},"results":[{}]}}"#,
        answers.len() - refused,
        results.join(",")
    );
    Ok(success_text(StatusCode::ACCEPTED, &data))
}

fn refused_event(id: String, error: &AcceptError) -> RefusedEvent {
    let is_other = *error == AcceptError::OtherContent;
    let code = if is_other { RefusalCode::OtherContent } else { RefusalCode::Invalid };
    RefusedEvent { id, error: Refusal { code, message: error.to_string() } }
}

/// The key that a request is to happen once under: the caller's own.
pub(in crate::http) fn idempotency_key(
    headers: &HeaderMap,
    caller: &Caller,
) -> Result<Option<String>, Box<Response>> {
    Ok(said_key(headers)?.map(|key| caller.own(key)))
}

/// The key as it was sent.
pub(in crate::http) fn said_key(headers: &HeaderMap) -> Result<Option<&str>, Box<Response>> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let visible = |key: &&str| key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_MAX).filter(visible);
    key.map(Some).ok_or_else(|| {
        let message = format!("`Idempotency-Key` must have 1 to {KEY_MAX} visible ASCII characters");
        Box::new(problem(StatusCode::BAD_REQUEST, "badKey", &message, false))
    })
}

/// The trace of the request, for an event that names none.
fn own_trace(cx: &RequestContext) -> Option<String> {
    cx.trace.map(TraceId::traceparent)
}

/// The trace that a request says it belongs to.
pub(in crate::http) fn trace_of(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    TraceId::of(text).map(|_| text.to_owned())
}

/// By hand, because it is the answer that the hub gives most often.
pub(in crate::http) fn shown(accepted: &AcceptedEvent) -> String {
    let deliveries: Vec<String> = accepted.deliveries.iter().map(|id| format!("\"{id}\"")).collect();
    let AcceptedEvent { id, deduplicated, counts, held, .. } = accepted;
    let unmatched = counts.considered == 0;
    format!(
        r#"{{"id":{},"deliveries":[{}],"deduplicated":{deduplicated},"filtered":{},"unmatched":{unmatched},"held":{held}}}"#,
        Value::from(id.as_str()),
        deliveries.join(","),
        counts.filtered,
    )
}

pub(in crate::http) fn not_accepted(error: &AcceptError) -> Response {
    match error {
        AcceptError::Store(error) => store_problem(error),
        AcceptError::OtherContent => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "otherContent", &error.to_string(), false)
        }
        AcceptError::BadId(_) => {
            wrong_fields(&[FieldError { field: "id".into(), reason: error.to_string() }])
        }
    }
}

fn view(event: &Event) -> wire::Event {
    let content = serde_json::from_slice(&event.payload).unwrap_or_else(|_| EventContent {
        id: event.id.clone(),
        r#type: event.kind.as_str().into(),
        source: event.source.clone(),
        time: event.accepted.to_string(),
        subject: None,
        extensions: None,
        data: Value::Null,
    });
    wire::Event {
        event: content,
        accepted_at: event.accepted.to_string().into(),
        trace: event.trace.clone(),
        rules_considered: event.considered.into(),
        rules_filtered: event.filtered.into(),
        unmatched: event.considered == 0,
    }
}

pub(in crate::http) async fn get(cx: RequestContext, Path(id): Path<String>) -> Response {
    if !cx.caller.sees_all() {
        return of_all();
    }
    match find(&cx.hub, &cx.caller, &id).await {
        Ok(Some(event)) => success(StatusCode::OK, &view(&event)),
        Ok(None) => missing("event"),
        Err(error) => store_problem(&error),
    }
}

/// The newest event of this id that the caller may see: several sources may use the same one.
pub(in crate::http) async fn find(
    hub: &Server,
    caller: &Caller,
    id: &str,
) -> Result<Option<Event>, StoreError> {
    let Some(sources) = caller.sources() else { return hub.bridge.event(id, None).await };
    let mut newest: Option<Event> = None;
    for source in sources {
        let found = hub.bridge.event(id, Some(&source)).await?;
        if newest.as_ref().map(|event| event.accepted) <= found.as_ref().map(|event| event.accepted) {
            newest = found;
        }
    }
    Ok(newest)
}

pub(in crate::http) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<EventQuery>,
) -> HandlerResult {
    if !cx.caller.sees_all() {
        return Ok(of_all());
    }
    let sources = match query.source {
        Some(source) => {
            Some(Some(source).filter(|source| cx.caller.sees_source(source)).into_iter().collect())
        }
        None => cx.caller.sources(),
    };
    let filter = EventFilter {
        kind: query.r#type.and_then(|kind| Pattern::new(kind.as_str()).ok()),
        sources,
        unmatched: query.unmatched.unwrap_or(false),
    };
    Ok(match cx.hub.bridge.events(filter, page_of(&query.page)).await {
        Ok(page) => {
            let events = page.items.iter().map(view).collect();
            success(StatusCode::OK, &EventPage { events, next_page_token: next_token(&page) })
        }
        Err(error) => store_problem(&error),
    })
}

/// A key that is limited to some services may not look at events: they belong to no service.
pub(in crate::http) fn of_all() -> Response {
    let word = "this key is restricted to some services, but events belong to none";
    problem(StatusCode::FORBIDDEN, "forbidden", word, false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use seawall_api::EventInput;
    use seawall_hub_core::domain::delivery::DeliveryId;
    use seawall_hub_core::service::MatchCounts;

    use super::*;
    use crate::http::input::Input;

    /// The problems without the list of known fields, whose order is not the same.
    fn told(problems: Vec<FieldError>) -> BTreeSet<String> {
        let told = |problem: FieldError| {
            let reason = problem.reason.split(" Known:").next().unwrap_or_default().to_owned();
            format!("{}: {reason}", problem.field)
        };
        problems.into_iter().map(told).collect()
    }

    /// API-4: the answer that is written by hand is the one that its type says.
    #[test]
    fn api_4_an_accepted_event_is_written_as_its_type() {
        for (id, deliveries, held) in [("a\"\n", 0, 0), ("evt-1", 2, 1_u32)] {
            let accepted = AcceptedEvent {
                id: id.into(),
                deliveries: (0..deliveries).map(|number| DeliveryId::new(1, number.into())).collect(),
                deduplicated: held > 0,
                started: Vec::new(),
                counts: MatchCounts { considered: deliveries, filtered: 3, unclear: 0 },
                held,
                timing: None,
            };
            let typed = wire::AcceptedEvent {
                id: id.into(),
                deliveries: accepted.deliveries.iter().map(|id| id.to_string().into()).collect(),
                deduplicated: accepted.deduplicated,
                filtered: 3,
                unmatched: deliveries == 0,
                held: held.into(),
            };
            assert_eq!(shown(&accepted), serde_json::to_string(&typed).unwrap());
        }
    }

    proptest! {
        /// HUB-3, API-4: the reader of events, which is made for speed, and the schema demand the same.
        #[test]
        fn api_4_events_are_read_as_their_schema_says(
            fields in prop::collection::btree_map(
                prop::sample::select(vec!["id", "type", "source", "time", "subject", "data", "tpye", "more"]),
                prop_oneof![
                    Just(Value::Null),
                    any::<bool>().prop_map(Value::from),
                    any::<u8>().prop_map(Value::from),
                    "[a-z.* ]{0,4}".prop_map(Value::from),
                    Just(json!("2026-11-15T12:00:00Z")),
                    Just(json!("a".repeat(300))),
                    Just(json!({"a": [1]})),
                ],
                0..6,
            ),
        ) {
            let body = json!(fields);
            let raw = read(body.to_string().as_bytes(), false).err().map(super::super::incoming::EventParseError::problems);
            let schema = Input::<EventInput>::of(body).finish().err();
            prop_assert_eq!(told(raw.unwrap_or_default()), told(schema.unwrap_or_default()));
        }
    }
}
