//! CloudEvents 1.0 over HTTP, in its three modes.
//!
//! | mode | how it is known | where the event is |
//! |---|---|---|
//! | structured | `content-type: application/cloudevents+json` | one JSON object in the body |
//! | batched | `content-type: application/cloudevents-batch+json` | an array of them |
//! | binary | another content type, and a header `ce-specversion` | attributes in `ce-…` headers, data in the body |
//!
//! What the specification leaves open is decided so:
//! - **Data in binary mode.** A JSON type gives JSON; `text/*` gives a text if it is in UTF-8; everything else, also text
//!   in another character set and a body without a type, goes to `data_base64`. An empty body is no data.
//! - **Data in structured mode** is what stands there; its content type is not held against it.
//! - **The same name twice** in an object is a mistake, at any depth: programs differ in which of the two they take, so
//!   what was filtered here might not be what is acted on there.
//! - **Numbers as attributes** are whole and have 32 bits, as the specification's integers; what is larger is sent as a
//!   text. Data may hold any number.
//! - **`null`** as an attribute is one that is not there. `data` with `null` is data, and excludes `data_base64`.
//! - **Extensions** are kept under their names, such as `traceparent` of distributed tracing, and get no meaning here.
//!
//! An event is unique by its `source` and `id` together; an `id` alone is not.

mod attributes;
mod binary;
mod json;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use axum::http::header::{CONTENT_TYPE, HeaderMap};
use seawall_api::FieldProblem;
use serde_json::Value;

use self::attributes::{Attributes, Problems};
use self::text::MediaType;

/// The most events in one batch. They are stored in one commit, which others wait for.
pub const BATCH_MAX: usize = 1000;

/// An event in the CloudEvents format.
#[derive(Clone, PartialEq, Debug)]
pub struct CloudEvent {
    /// Its id, unique for its source.
    pub id: String,
    /// The attribute `type`.
    pub kind: String,
    /// What it comes from: a reference to a URI.
    pub source: String,
    /// When it happened, by RFC 3339.
    pub time: Option<String>,
    /// What it is about, within the source.
    pub subject: Option<String>,
    /// The URI of the schema of its data.
    pub dataschema: Option<String>,
    /// The media type of its data. In structured mode, data without one is JSON.
    pub datacontenttype: Option<String>,
    /// All other attributes, by name: texts, whole numbers, true and false.
    pub extensions: Vec<(String, Value)>,
    /// Its data, as JSON or as a text; null if it has none or is in `data_base64`.
    pub data: Value,
    /// Its data if it is neither, in base 64.
    pub data_base64: Option<String>,
}

impl CloudEvent {
    /// An extension by its name, such as `traceparent`.
    #[must_use]
    pub fn extension(&self, name: &str) -> Option<&Value> {
        self.extensions.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// How events are in a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloudEventMode {
    /// One, whole in the body.
    Structured,
    /// Several in the body.
    Batched,
    /// One, with its attributes in headers.
    Binary,
}

impl CloudEventMode {
    /// Which mode a request has, if it has CloudEvents at all. One with a format that nobody here reads, such as Avro, has
    /// its mode and is refused when it is read: it must not pass for something else.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<CloudEventMode> {
        let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        if kind.starts_with("application/cloudevents-batch") {
            Some(CloudEventMode::Batched)
        } else if kind.starts_with("application/cloudevents") {
            Some(CloudEventMode::Structured)
        } else {
            headers.contains_key("ce-specversion").then_some(CloudEventMode::Binary)
        }
    }
}

/// Why a request has no events that could be accepted. A batch is whole or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloudEventError {
    /// The body can't be read as JSON.
    NotJson(String),
    /// Some fields are wrong: all of them.
    Wrong(Vec<FieldProblem>),
}

impl fmt::Display for CloudEventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloudEventError::NotJson(why) => write!(f, "the body is not valid JSON: {why}"),
            CloudEventError::Wrong(problems) => {
                f.write_str("not a valid CloudEvent")?;
                for (index, FieldProblem { field, reason }) in problems.iter().enumerate() {
                    write!(f, "{} `{field}`: {reason}", if index == 0 { ":" } else { ";" })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for CloudEventError {}

/// The events of a request, or everything that is wrong with it. An empty batch is in order and has none.
pub fn read(
    mode: CloudEventMode,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Vec<CloudEvent>, CloudEventError> {
    let mut problems = Problems::default();
    let json = |format| {
        expect(format, headers).map_err(|problem| CloudEventError::Wrong(vec![problem]))?;
        json::parse(body).map_err(CloudEventError::NotJson)
    };
    let events = match mode {
        CloudEventMode::Binary => vec![binary::read(headers, body, &mut problems)],
        CloudEventMode::Structured => vec![object(json("application/cloudevents+json")?, &mut problems)],
        CloudEventMode::Batched => batch(json("application/cloudevents-batch+json")?, &mut problems),
    };
    // An event without a problem is whole; with one, nobody sees any of them.
    problems.end().map_err(CloudEventError::Wrong)?;
    Ok(events)
}

/// Whether the body is in this format. If not, nothing in it can be said to be wrong.
fn expect(format: &str, headers: &HeaderMap) -> Result<(), FieldProblem> {
    let wrong = |reason: String| FieldProblem { field: CONTENT_TYPE.as_str().into(), reason };
    if headers.get_all(CONTENT_TYPE).iter().nth(1).is_some() {
        return Err(wrong("it stands more than once".into()));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|value| MediaType::parse(value.to_str().ok()?));
    let kind = kind.ok_or_else(|| wrong("must be a media type".into()))?;
    if kind.essence() != format {
        return Err(wrong(format!("of the formats of CloudEvents, only `{format}` is read in this mode")));
    }
    if kind.is_utf8() { Ok(()) } else { Err(wrong("JSON is in UTF-8".into())) }
}

fn batch(value: Value, problems: &mut Problems) -> Vec<CloudEvent> {
    let Value::Array(list) = value else {
        problems.add("", "must be an array of events");
        return Vec::new();
    };
    if list.len() > BATCH_MAX {
        problems.add("", format!("there are {} events; a batch has at most {BATCH_MAX}", list.len()));
        return Vec::new();
    }
    let read = |(index, value)| {
        problems.within(format!("[{index}]."));
        object(value, problems)
    };
    list.into_iter().enumerate().map(read).collect()
}

fn object(value: Value, problems: &mut Problems) -> CloudEvent {
    let Value::Object(mut map) = value else {
        problems.add("", "must be an object");
        return CloudEvent::none();
    };
    let data = map.remove("data");
    let data_base64 = match map.remove("data_base64") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => {
            if !text::is_base64(&text) {
                problems.add("data_base64", "must be base64");
            }
            Some(text)
        }
        Some(_) => {
            problems.add("data_base64", "must be a string");
            None
        }
    };
    if data.is_some() && data_base64.is_some() {
        problems.add("data_base64", "set either `data` or `data_base64`, not both");
    }
    let event = Attributes::new(map, problems).event();
    CloudEvent { data: data.unwrap_or_default(), data_base64, ..event }
}
