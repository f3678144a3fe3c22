//! Reads CloudEvents out of request bodies.

use axum::body::Bytes;
use axum::http::HeaderMap;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::service::{EventData, IncomingEvent};
use serde_json::json;

use crate::http::error::ApiError;
use crate::source::cloudevents::{self, CloudEvent, CloudEventError, CloudEventMode};
use seawall_api::FieldProblem;

/// The same problems, below a field.
pub(crate) fn below(field: &str, problems: Vec<FieldProblem>) -> Vec<FieldProblem> {
    let below = |problem: FieldProblem| FieldProblem {
        field: if problem.field.is_empty() { field.to_owned() } else { format!("{field}.{}", problem.field) },
        reason: problem.reason,
    };
    problems.into_iter().map(below).collect()
}

pub(super) fn cloud_events(
    mode: CloudEventMode,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Vec<IncomingEvent>, ApiError> {
    let events = cloudevents::read(mode, headers, body).map_err(|unreadable| match unreadable {
        CloudEventError::Wrong(problems) => problems.into(),
        other => ApiError::new("notJson", other.to_string()),
    })?;
    let (mut incoming, mut problems) = (Vec::new(), Vec::new());
    for (at, event) in events.into_iter().enumerate() {
        match from_cloud_event(event) {
            Ok(event) => incoming.push(event),
            Err(mut problem) => {
                if mode == CloudEventMode::Batched {
                    problem.field = format!("[{at}].{}", problem.field);
                }
                problems.push(problem);
            }
        }
    }
    if problems.is_empty() { Ok(incoming) } else { Err(problems.into()) }
}

fn from_cloud_event(event: CloudEvent) -> Result<IncomingEvent, FieldProblem> {
    let kind = EventType::new(&event.kind)
        .map_err(|error| FieldProblem { field: "type".into(), reason: error.to_string() })?;
    let trace = event.extension("traceparent").and_then(|trace| trace.as_str().map(ToOwned::to_owned));
    let mut extensions = event.extensions;
    let more = [("dataschema", event.dataschema), ("datacontenttype", event.datacontenttype)];
    extensions.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
    extensions.extend(event.data_base64.map(|data| ("data_base64".to_owned(), json!(data))));
    Ok(IncomingEvent {
        id: event.id,
        kind,
        source: event.source,
        time: event.time,
        subject: event.subject,
        extensions,
        data: EventData::from(&event.data),
        trace: trace.filter(|trace| TraceId::of(trace).is_some()),
        key: None,
    })
}
