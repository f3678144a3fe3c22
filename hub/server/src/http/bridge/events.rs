//! Events in, one or many, as JSON of our own or as CloudEvents.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use seawall_api::{self as wire, EventContent, EventPage, EventQuery, Refusal, RefusalCode, RefusedEvent};
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::event_type::{EventType, Pattern};
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::port::store::EventFilter;
use seawall_hub_core::service::{AcceptError, AcceptedEvent, EventData, IncomingEvent};
use serde_json::Value;
use serde_json::value::RawValue;

use super::cloud_events::{below, cloud_events};
use crate::http::access::{Caller, UNNAMED};
use crate::http::context::RequestContext;
use crate::http::error::ApiError;
use crate::http::fresh_event_id;
use crate::http::query::{QueryInput, next_token, page_of};
use crate::http::raw::RawObject;
use crate::http::reply::{ApiReply, ApiResult};
use crate::source::cloudevents::{BATCH_MAX, CloudEventMode};
use seawall_api::FieldProblem;
use serde::Serialize;

const KEY: &str = "idempotency-key";
const KEY_MAX: usize = 200;

pub(crate) async fn accept(
    mut cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<AcceptedEvents> {
    cx.refresh();
    let key = idempotency_key(&headers, &cx.caller)?;
    let mut incoming = match CloudEventMode::of(&headers) {
        None => read(&body, !headers.contains_key(KEY))?,
        Some(mode) => {
            let mut events = cloud_events(mode, &headers, &body)?;
            match events.pop() {
                Some(event) if events.is_empty() => event,
                event => return batch(&cx, events.into_iter().chain(event).collect()).await,
            }
        }
    };
    if !cx.caller.sees_source(&incoming.source) {
        return Err(cx.caller.source_refused(&incoming.source));
    }
    incoming.key = key;
    incoming.trace = trace_of(&headers).or(incoming.trace).or_else(|| own_trace(&cx));
    Ok(accepted_reply(&cx.hub.bridge.accept(&cx, incoming).await?))
}

/// What was accepted: a `seawall_api::AcceptedEvent` or an `AcceptedBatch`, written by hand because the hub gives no response more
/// often.
#[derive(Serialize)]
pub(crate) enum AcceptedEvents {}

/// `POST …/events:batchCreate` with `{events: […]}`, or a batch of CloudEvents.
pub(crate) async fn accept_batch(
    mut cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<AcceptedEvents> {
    cx.refresh();
    if let Some(mode) = CloudEventMode::of(&headers) {
        return batch(&cx, cloud_events(mode, &headers, &body)?).await;
    }
    let mut fields = RawObject::read(&body)?;
    let list = fields.raw("events").and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list).ok());
    let mut incoming = Vec::new();
    match list {
        Some(list) if list.len() <= BATCH_MAX => {
            for (at, event) in list.into_iter().enumerate() {
                match read(event.get().as_bytes(), true) {
                    Ok(event) => incoming.push(event),
                    Err(unread) => {
                        let problems = below(&format!("events[{at}]"), unread.problems());
                        problems.into_iter().for_each(|one| fields.wrong(&one.field, one.reason));
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
        return Err(problems.into());
    }
    let trace = trace_of(&headers);
    for event in &mut incoming {
        event.trace.clone_from(&trace);
    }
    batch(&cx, incoming).await
}

/// Each for itself. If the store did not take one, the whole is to be sent again: those that it took are known then.
async fn batch(cx: &RequestContext, mut incoming: Vec<IncomingEvent>) -> ApiResult<AcceptedEvents> {
    if let Some(event) = incoming.iter().find(|event| !cx.caller.sees_source(&event.source)) {
        return Err(cx.caller.source_refused(&event.source));
    }
    for event in &mut incoming {
        event.trace = event.trace.take().or_else(|| own_trace(cx));
    }
    let ids: Vec<String> = incoming.iter().map(|event| event.id.clone()).collect();
    let (mut results, mut refused) = (Vec::with_capacity(ids.len()), 0);
    for (result, id) in cx.hub.bridge.accept_all(cx, incoming).await.into_iter().zip(ids) {
        match result {
            Ok(accepted) => results.push(shown(&accepted)),
            Err(AcceptError::Store(error)) => return Err(error.into()),
            Err(error) => {
                refused += 1;
                results.push(serde_json::to_string(&refused_event(id, &error)).unwrap_or_default());
            }
        }
    }
    let data = format!(
        r#"{{"accepted":{},"refused":{refused},"results":[{}]}}"#,
        results.len() - refused,
        results.join(",")
    );
    Ok(ApiReply::written(data).with_status(StatusCode::ACCEPTED))
}

fn refused_event(id: String, error: &AcceptError) -> RefusedEvent {
    let is_other = *error == AcceptError::OtherContent;
    let code = if is_other { RefusalCode::OtherContent } else { RefusalCode::Invalid };
    RefusedEvent { id, error: Refusal { code, message: error.to_string() } }
}

/// The key that a request is to happen once under: the caller's own.
pub(crate) fn idempotency_key(headers: &HeaderMap, caller: &Caller) -> Result<Option<String>, ApiError> {
    Ok(said_key(headers)?.map(|key| caller.own(key)))
}

/// The key as it was sent.
pub(crate) fn said_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let visible = |key: &&str| key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_MAX).filter(visible);
    key.map(Some).ok_or_else(|| {
        let message = format!("`Idempotency-Key` must have 1 to {KEY_MAX} visible ASCII characters");
        ApiError::new("badKey", message)
    })
}

/// The trace of the request, for an event that names none.
fn own_trace(cx: &RequestContext) -> Option<String> {
    cx.trace.map(TraceId::traceparent)
}

/// The trace that a request says it belongs to.
pub(crate) fn trace_of(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    TraceId::of(text).map(|_| text.to_owned())
}

/// An event as somebody has written it. One without an id gets one, unless it has to have one.
pub(crate) fn read(written: &[u8], named: bool) -> Result<IncomingEvent, EventParseError> {
    let mut fields = RawObject::read(written)?;
    let id = if named { fields.needed("id") } else { fields.text("id").unwrap_or_else(fresh_event_id) };
    let kind = fields.needed("type");
    let kind = match EventType::new(&kind) {
        _ if kind.is_empty() => None,
        Ok(kind) => Some(kind),
        Err(error) => {
            fields.wrong("type", error.to_string());
            None
        }
    };
    let source = fields.text("source").unwrap_or_else(|| UNNAMED.into());
    let (time, subject) = (fields.text("time"), fields.text("subject"));
    if time.as_ref().is_some_and(|time| Millis::from_rfc3339(time).is_none()) {
        fields.wrong("time", "must be a time by RFC 3339, such as `2026-11-15T12:00:00Z`");
    }
    let data = EventData::of_text(fields.nested("data").unwrap_or("null").to_owned());
    let problems = fields.end("id, type, source, time, subject, data");
    match kind {
        Some(kind) if problems.is_empty() => Ok(IncomingEvent {
            id,
            kind,
            source,
            time,
            subject,
            extensions: Vec::new(),
            data,
            trace: None,
            key: None,
        }),
        _ => Err(EventParseError::Wrong(problems)),
    }
}

/// Why an event could not be read.
pub(crate) enum EventParseError {
    NotJson(serde_json::Error),
    Wrong(Vec<FieldProblem>),
}

impl From<serde_json::Error> for EventParseError {
    fn from(error: serde_json::Error) -> Self {
        EventParseError::NotJson(error)
    }
}

impl From<EventParseError> for ApiError {
    fn from(error: EventParseError) -> Self {
        match error {
            EventParseError::NotJson(error) => error.into(),
            EventParseError::Wrong(problems) => problems.into(),
        }
    }
}

impl EventParseError {
    /// Of an event within something that was read as JSON already.
    pub(crate) fn problems(self) -> Vec<FieldProblem> {
        match self {
            EventParseError::NotJson(error) => {
                vec![FieldProblem { field: String::new(), reason: error.to_string() }]
            }
            EventParseError::Wrong(problems) => problems,
        }
    }
}

/// By hand, because it is the answer that the hub gives most often.
fn shown(accepted: &AcceptedEvent) -> String {
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

/// The response to an event that was accepted.
pub(crate) fn accepted_reply<T>(accepted: &AcceptedEvent) -> ApiReply<T> {
    ApiReply::written(shown(accepted)).with_status(StatusCode::ACCEPTED)
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Store(error) => error.into(),
            AcceptError::OtherContent => ApiError::new("otherContent", error.to_string()),
            AcceptError::BadId(_) => FieldProblem { field: "id".into(), reason: error.to_string() }.into(),
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

pub(crate) async fn get(cx: RequestContext, Path(id): Path<String>) -> ApiResult<wire::Event> {
    check_services(&cx.caller)?;
    Ok(ApiReply::new(view(&find(&cx, &id).await?)))
}

/// The newest event of this id that the caller may see: several sources may use the same one.
pub(crate) async fn find(cx: &RequestContext, id: &str) -> Result<Event, ApiError> {
    let mut newest: Option<Event> = None;
    match cx.caller.sources() {
        None => newest = cx.hub.bridge.event(id, None).await?,
        Some(sources) => {
            for source in sources {
                let found = cx.hub.bridge.event(id, Some(&source)).await?;
                if newest.as_ref().map(|event| event.accepted) <= found.as_ref().map(|event| event.accepted) {
                    newest = found;
                }
            }
        }
    }
    newest.ok_or_else(|| ApiError::missing("event"))
}

pub(crate) async fn list(
    cx: RequestContext,
    QueryInput(query): QueryInput<EventQuery>,
) -> ApiResult<EventPage> {
    check_services(&cx.caller)?;
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
    let page = cx.hub.bridge.events(filter, page_of(&query.page)).await?;
    let events = page.items.iter().map(view).collect();
    Ok(ApiReply::new(EventPage { events, next_page_token: next_token(&page) }))
}

/// Refuses a key that is limited to some services: events belong to no service.
pub(crate) fn check_services(caller: &Caller) -> Result<(), ApiError> {
    if caller.sees_all() {
        return Ok(());
    }
    Err(ApiError::new("forbidden", "this key is restricted to some services, but events belong to none"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use seawall_api::EventInput;
    use seawall_hub_core::domain::delivery::DeliveryId;
    use seawall_hub_core::service::MatchCounts;

    use serde_json::json;

    use super::*;
    use crate::http::input::Input;

    /// The problems without the list of known fields, whose order is not the same.
    fn told(problems: Vec<FieldProblem>) -> BTreeSet<String> {
        let told = |problem: FieldProblem| {
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
            let raw = read(body.to_string().as_bytes(), false).err().map(EventParseError::problems);
            let schema = Input::<EventInput>::of(body).finish().err();
            prop_assert_eq!(told(raw.unwrap_or_default()), told(schema.unwrap_or_default()));
        }
    }
}
