//! Reads events out of request bodies: one, many, and CloudEvents.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use seawall_hub_core::domain::event_type::EventType;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::domain::trace::TraceId;
use seawall_hub_core::service::{EventData, IncomingEvent};
use serde_json::json;

use crate::http::access::UNNAMED;
use crate::http::fields::FieldError;
use crate::http::raw::RawObject;
use crate::http::reply::{not_json, problem, wrong_fields};
use crate::source::cloudevents::{self, CloudEvent, CloudEventError, CloudEventMode};

/// An event as somebody has written it. One without an id gets one, unless it has to have one.
pub(in crate::http) fn read(written: &[u8], named: bool) -> Result<IncomingEvent, EventParseError> {
    let mut fields = RawObject::read(written)?;
    let id = if named {
        fields.needed("id")
    } else {
        fields.text("id").unwrap_or_else(crate::http::fresh_event_id)
    };
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
pub(in crate::http) enum EventParseError {
    NotJson(serde_json::Error),
    Wrong(Vec<FieldError>),
}

impl From<serde_json::Error> for EventParseError {
    fn from(error: serde_json::Error) -> Self {
        EventParseError::NotJson(error)
    }
}

impl EventParseError {
    pub(super) fn response(&self) -> Response {
        match self {
            EventParseError::NotJson(error) => not_json(error),
            EventParseError::Wrong(problems) => wrong_fields(problems),
        }
    }

    /// Of an event within something that was read as JSON already.
    pub(in crate::http) fn problems(self) -> Vec<FieldError> {
        match self {
            EventParseError::NotJson(error) => {
                vec![FieldError { field: String::new(), reason: error.to_string() }]
            }
            EventParseError::Wrong(problems) => problems,
        }
    }
}

/// The same problems, below a field.
pub(in crate::http) fn below(field: &str, problems: Vec<FieldError>) -> Vec<FieldError> {
    let below = |problem: FieldError| FieldError {
        field: if problem.field.is_empty() { field.to_owned() } else { format!("{field}.{}", problem.field) },
        reason: problem.reason,
    };
    problems.into_iter().map(below).collect()
}

pub(super) fn cloud_events(
    mode: CloudEventMode,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Vec<IncomingEvent>, Box<Response>> {
    let events = cloudevents::read(mode, headers, body).map_err(|unreadable| match unreadable {
        CloudEventError::Wrong(problems) => {
            let problem = |one: cloudevents::Problem| FieldError { field: one.field, reason: one.reason };
            wrong_fields(&problems.into_iter().map(problem).collect::<Vec<_>>())
        }
        other => problem(StatusCode::BAD_REQUEST, "notJson", &other.to_string(), false),
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
    if problems.is_empty() { Ok(incoming) } else { Err(Box::new(wrong_fields(&problems))) }
}

fn from_cloud_event(event: CloudEvent) -> Result<IncomingEvent, FieldError> {
    let kind = EventType::new(&event.kind)
        .map_err(|error| FieldError { field: "type".into(), reason: error.to_string() })?;
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
