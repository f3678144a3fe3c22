//! The exact request that a rule makes of an event.

use crate::encode::{DOT_SEGMENT, PATH_SEGMENT, percent};
use bytes::Bytes;
use serde_json::Value as Json;

use super::climb::{PATH_BYTES_MAX, check_path};
use super::expression::{Fault, TextBuilder};
use super::filter::Filter;
use super::template::JsonTemplate;
use super::text::{TextTemplate, as_it_is};
use super::{Meter, OUTPUT_BYTES_MAX, TEMPLATE_BYTES_MAX, TemplateContext, TemplateError};

/// The texts of a rule before they are compiled.
#[derive(Clone, Debug)]
pub struct RuleText<'a> {
    /// The condition on events; `None` matches all events of the type.
    pub filter: Option<&'a str>,
    /// The HTTP method, like `POST`.
    pub method: &'a str,
    /// The path below the address of the service: `/invoices/{{ data.id }}?by={{ source }}`.
    pub path: &'a str,
    /// The names and value templates of headers.
    pub headers: &'a [(String, String)],
    /// The template of the body; `None` sends the payload of the event.
    pub body: Option<&'a Json>,
    /// The template of the ordering key; `None` means no order.
    pub order: Option<&'a str>,
}

/// A compiled rule.
#[derive(Debug)]
pub struct RequestTemplate {
    filter: Option<Filter>,
    method: Box<str>,
    path: TextTemplate,
    headers: Vec<HeaderTemplate>,
    body: Option<JsonTemplate>,
    order: Option<TextTemplate>,
}

/// The maximum length of an ordering key in bytes.
const ORDER_BYTES_MAX: usize = 200;

/// A header whose value may hold expressions.
#[derive(Debug)]
pub struct HeaderTemplate {
    name: Box<str>,
    value: TextTemplate,
}

/// A request that is ready to be sent to a service. Its parts mean what the type of the service says: a rule for a broker
/// renders a message into the same parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RenderedRequest {
    /// What the service is asked to do: the method of an HTTP request.
    pub operation: String,
    /// Where within the service: the path of an HTTP request with its query, percent-encoded.
    pub target: String,
    /// The names and values that go with the body, with names in lower case: the headers of an HTTP request.
    pub attributes: Vec<(String, String)>,
    pub body: RequestBody,
}

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestBody {
    /// The request has no body.
    Empty,
    /// The body is the payload of the event, which is stored once, with the event.
    Event(Bytes),
    /// The body was rendered by the rule.
    Own(Bytes),
}

impl RequestBody {
    /// Returns the bytes of the body; `None` if it has none.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            RequestBody::Empty => None,
            RequestBody::Event(bytes) | RequestBody::Own(bytes) => Some(bytes),
        }
    }
}

/// The first byte of an encoded request: the kind of its body.
const EMPTY: u8 = 0;
/// The kind of a body that is the event and is not encoded here.
pub const BODY_IS_EVENT: u8 = 1;
const OWN: u8 = 2;

impl RenderedRequest {
    /// Encodes the request: the kind of its body, the length of its head, its head, and its body unless that is the event.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = serde_json::json!([self.operation, self.target, self.attributes]).to_string();
        let (mark, own) = match &self.body {
            RequestBody::Empty => (EMPTY, &[][..]),
            RequestBody::Event(_) => (BODY_IS_EVENT, &[][..]),
            RequestBody::Own(bytes) => (OWN, &bytes[..]),
        };
        let mut out = Vec::with_capacity(5 + head.len() + own.len());
        out.push(mark);
        out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(own);
        out
    }

    /// Decodes a request. `event` is the payload of its event.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], event: &Bytes) -> Option<Self> {
        let (mark, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (head, own) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        let head: Json = serde_json::from_slice(head).ok()?;
        let text = |value: &Json| value.as_str().map(ToOwned::to_owned);
        let header = |pair: &Json| Some((text(&pair[0])?, text(&pair[1])?));
        Some(RenderedRequest {
            operation: text(&head[0])?,
            target: text(&head[1])?,
            attributes: head[2].as_array()?.iter().map(header).collect::<Option<_>>()?,
            body: match *mark {
                EMPTY => RequestBody::Empty,
                BODY_IS_EVENT => RequestBody::Event(event.clone()),
                OWN => RequestBody::Own(Bytes::copy_from_slice(own)),
                _ => return None,
            },
        })
    }
}

impl RenderedRequest {
    /// Returns all mistakes in an HTTP request that somebody wrote by hand.
    #[must_use]
    pub fn mistakes(&self) -> Vec<TemplateError> {
        let mut mistakes = Vec::new();
        if !METHODS.contains(&&*self.operation) && self.operation != "OPTIONS" {
            let method = self.operation.escape_debug();
            mistakes.push(TemplateError::new(
                "method",
                format!("must be one of {}, not `{method}`", METHODS.join(", ")),
            ));
        }
        if self.target.starts_with('/') {
            keep(check_path(&self.target), &mut mistakes);
        } else {
            mistakes.push(TemplateError::new(
                "path",
                "must start with a slash; it is below the address of the service",
            ));
        }
        for (name, value) in &self.attributes {
            let place = format!("headers.{}", name.escape_debug());
            if keep(check_name(name, &place), &mut mistakes).is_some() {
                keep(check_value(value, &place), &mut mistakes);
            }
        }
        mistakes
    }
}

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Headers of framing and connection, which a rule may never set.
const FORBIDDEN: [&str; 13] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
];

impl RequestTemplate {
    /// Compiles a rule, and returns all its mistakes at once.
    pub fn new(rule: &RuleText<'_>) -> Result<Self, Vec<TemplateError>> {
        let mut mistakes = Vec::new();
        let size = rule.body.map_or(0, |body| body.to_string().len()) + rule.path.len();
        if size > TEMPLATE_BYTES_MAX {
            return Err(vec![TemplateError::new(
                "body",
                format!("templates may be {TEMPLATE_BYTES_MAX} bytes, not {size}"),
            )]);
        }
        let filter = rule.filter.and_then(|text| keep(Filter::new(text), &mut mistakes));
        let method = rule.method.to_ascii_uppercase();
        if !METHODS.contains(&&*method) {
            mistakes.push(TemplateError::new(
                "method",
                format!("must be one of {}, not `{}`", METHODS.join(", "), rule.method),
            ));
        }
        if !rule.path.starts_with('/') {
            mistakes.push(TemplateError::new(
                "path",
                "must start with a slash; it is below the address of the service",
            ));
        }
        let path = keep(TextTemplate::new(rule.path, "path"), &mut mistakes);
        if let Some(outline) = path.as_ref().map(TextTemplate::outline) {
            keep(check_path(&outline), &mut mistakes);
        }
        let headers =
            rule.headers.iter().filter_map(|(name, value)| header(name, value, &mut mistakes)).collect();
        let body = match rule.body.map(|body| JsonTemplate::new(body, "body")) {
            Some(Err(more)) => {
                mistakes.extend(more);
                None
            }
            Some(Ok(body)) => Some(body),
            None => None,
        };
        let order = rule.order.and_then(|text| keep(TextTemplate::new(text, "ordering.key"), &mut mistakes));
        match path {
            Some(path) if mistakes.is_empty() => {
                Ok(RequestTemplate { filter, method: method.into(), path, headers, body, order })
            }
            _ => Err(mistakes),
        }
    }

    /// Returns the filter of the rule.
    #[must_use]
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Renders the ordering key of an event; `None` if the rule has no order.
    pub fn order(&self, view: &TemplateContext<'_>, meter: &Meter) -> Result<Option<String>, TemplateError> {
        let Some(order) = &self.order else { return Ok(None) };
        order.render(view, "ordering.key", (meter, ORDER_BYTES_MAX), as_it_is).map(Some)
    }

    /// Renders the request for an event. `event` is its payload, for rules without a body of their own.
    pub fn render(
        &self,
        view: &TemplateContext<'_>,
        event: &Bytes,
        meter: &Meter,
    ) -> Result<RenderedRequest, TemplateError> {
        let path = self.path.render(view, "path", (meter, PATH_BYTES_MAX), percent_encode)?;
        check_path(&path)?;
        let mut headers = Vec::with_capacity(self.headers.len() + 1);
        for HeaderTemplate { name, value } in &self.headers {
            let value = value.render(view, "", (meter, OUTPUT_BYTES_MAX), as_it_is);
            let value = value.and_then(|value| check_value(&value, "").map(|()| value));
            headers.push((
                name.to_string(),
                value.map_err(|mistake| mistake.within(&format!("headers.{name}")))?,
            ));
        }
        let body = match (&self.body, &*self.method) {
            (Some(template), _) if is_json(&headers) => {
                RequestBody::Own(template.render(view, "body", meter)?.into())
            }
            (Some(template), _) => RequestBody::Own(template.render_plain(view, "body", meter)?.into()),
            (None, "GET" | "HEAD" | "DELETE") => RequestBody::Empty,
            (None, _) => RequestBody::Event(event.clone()),
        };
        if body.bytes().is_some_and(|body| body.len() > OUTPUT_BYTES_MAX) {
            return Err(super::mistake::too_large("body", OUTPUT_BYTES_MAX));
        }
        if body != RequestBody::Empty && !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".into(), "application/json".into()));
        }
        Ok(RenderedRequest { operation: self.method.to_string(), target: path, attributes: headers, body })
    }
}

/// Whether the body is JSON. A text whose rule sets another content type is sent without quotes.
fn is_json(headers: &[(String, String)]) -> bool {
    let kind = headers.iter().find(|(name, _)| name == "content-type");
    kind.is_none_or(|(_, kind)| kind.contains("json"))
}

fn keep<T>(made: Result<T, TemplateError>, mistakes: &mut Vec<TemplateError>) -> Option<T> {
    made.map_err(|mistake| mistakes.push(mistake)).ok()
}

fn header(name: &str, value: &str, mistakes: &mut Vec<TemplateError>) -> Option<HeaderTemplate> {
    let place = format!("headers.{}", name.escape_debug());
    let name = keep(check_name(name, &place), mistakes)?;
    let value = keep(TextTemplate::new(value, &place), mistakes)?;
    Some(HeaderTemplate { name: name.into(), value })
}

/// Checks the name of a header, and returns it in lower case.
fn check_name(name: &str, place: &str) -> Result<String, TemplateError> {
    let small = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(TemplateError::new(place, "a header name must consist of letters, digits and hyphens"));
    }
    if FORBIDDEN.contains(&&*small) {
        return Err(TemplateError::new(place, "this header belongs to the connection, and the hub sets it"));
    }
    Ok(small)
}

/// Encodes a value so that it can't leave its place in a path: no slash, no question mark, no dots that climb.
fn percent_encode(value: &str, out: &mut TextBuilder, meter: &Meter) -> Result<(), Fault> {
    if value.len() > PATH_BYTES_MAX {
        return Err(Fault::TooLarge);
    }
    meter.read(3 * value.len())?;
    let mut encoded = String::with_capacity(value.len());
    encoded.extend(percent(value, if value.len() > 2 { PATH_SEGMENT } else { DOT_SEGMENT }));
    out.push(&encoded, meter)
}

fn check_value(value: &str, place: &str) -> Result<(), TemplateError> {
    let fine = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7F);
    if value.bytes().all(fine) {
        Ok(())
    } else {
        Err(TemplateError::new(
            place,
            "a header value must not contain line breaks or other control characters",
        ))
    }
}
