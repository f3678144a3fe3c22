//! Binary mode: attributes in headers, data in the body.

use axum::http::header::{CONTENT_TYPE, HeaderMap};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::attributes::{Attributes, Problems};
use super::text::MediaType;
use super::{CloudEvent, json};

const PREFIX: &str = "ce-";

pub(super) fn read(headers: &HeaderMap, body: &[u8], problems: &mut Problems) -> CloudEvent {
    problems.within(PREFIX);
    let mut map = Map::new();
    for name in headers.keys() {
        let Some(attribute) = name.as_str().strip_prefix(PREFIX) else { continue };
        let mut values = headers.get_all(name).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            problems.add(attribute, "it stands more than once");
            continue;
        };
        match decode(value.as_bytes()) {
            _ if attribute == "datacontenttype" => {
                problems.add(attribute, "in this mode it is the header `content-type`");
            }
            Ok(text) => drop(map.insert(attribute.to_owned(), Value::String(text))),
            Err(reason) => problems.add(attribute, reason),
        }
    }
    let event = Attributes::new(map, problems).event();
    problems.within("");
    let (datacontenttype, kind) = content_type(headers, problems);
    let (data, data_base64) = match kind {
        _ if body.is_empty() => (Value::Null, None),
        Some(kind) if kind.is_json() => match json::parse(body) {
            Ok(value) => (value, None),
            Err(why) => {
                problems.add("data", format!("the body is not valid JSON: {why}"));
                (Value::Null, None)
            }
        },
        // Some senders name no type. What reads as JSON is JSON, as it is where nothing is said in the other modes.
        None if datacontenttype.is_none() => {
            json::parse(body).map_or_else(|_| bytes(body), |value| (value, None))
        }
        Some(kind) if kind.is_text() && kind.is_utf8() => match std::str::from_utf8(body) {
            Ok(text) => (Value::String(text.to_owned()), None),
            Err(_) => bytes(body),
        },
        _ => bytes(body),
    };
    CloudEvent { datacontenttype, data, data_base64, ..event }
}

fn bytes(body: &[u8]) -> (Value, Option<String>) {
    (Value::Null, Some(STANDARD.encode(body)))
}

fn content_type(headers: &HeaderMap, problems: &mut Problems) -> (Option<String>, Option<MediaType>) {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = values.next() else { return (None, None) };
    let field = CONTENT_TYPE.as_str();
    if values.next().is_some() {
        problems.add(field, "it stands more than once");
    }
    let text = value.to_str().unwrap_or_default();
    let kind = MediaType::parse(text);
    if kind.is_none() {
        problems.add(field, "must be a media type");
    }
    (Some(text.to_owned()), kind)
}

/// The value of a header: first what is in double quotes, as older senders write spaces, then one round of percent signs.
fn decode(value: &[u8]) -> Result<String, &'static str> {
    if !value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return Err("must consist of visible ASCII characters; percent-encode others");
    }
    let unquoted = unquote(value).ok_or("a double quote is not closed")?;
    let decoded = percent(&unquoted).ok_or("a percent sign must be followed by two hexadecimal digits")?;
    String::from_utf8(decoded).map_err(|_| "what its percent signs stand for is not in UTF-8")
}

fn unquote(value: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut quoted) = (Vec::with_capacity(value.len()), false);
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => out.push(bytes.next()?),
            _ => out.push(byte),
        }
    }
    (!quoted).then_some(out)
}

fn percent(value: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            _ => byte,
        });
    }
    Some(out)
}
