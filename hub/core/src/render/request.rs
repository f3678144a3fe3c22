//! The exact request that a rule makes of an event.

use bytes::Bytes;
use serde_json::Value as Json;

use super::climb::climbs;
use super::expression::{Builder, Fault};
use super::filter::Filter;
use super::template::Template;
use super::text::{Text, as_it_is};
use super::{Meter, Mistake, OUTPUT_BYTES_MAX, TEMPLATE_BYTES_MAX, View};

/// A rule as somebody has written it.
#[derive(Clone, Debug)]
pub struct RuleText<'a> {
    /// A condition, or nothing for all events of the kind.
    pub filter: Option<&'a str>,
    /// `POST`, `PUT`, …
    pub method: &'a str,
    /// Below the address of the service: `/invoices/{{ data.id }}?by={{ source }}`.
    pub path: &'a str,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// What is sent; nothing for an event as it came.
    pub body: Option<&'a Json>,
    /// What belongs together, if it is delivered one after the other.
    pub order: Option<&'a str>,
}

/// A rule, compiled.
#[derive(Debug)]
pub struct Program {
    filter: Option<Filter>,
    method: Box<str>,
    path: Text,
    headers: Vec<HeaderTemplate>,
    body: Option<Template>,
    order: Option<Text>,
}

/// The longest key of an order.
const ORDER_BYTES_MAX: usize = 200;

/// A header whose value may hold expressions.
#[derive(Debug)]
pub struct HeaderTemplate {
    name: Box<str>,
    value: Text,
}

/// A request, ready to be sent below the address of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query, percent-encoded.
    pub path: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
}

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// None.
    Empty,
    /// The event as it came. Kept once, with the event.
    Event(Bytes),
    /// Its own.
    Own(Bytes),
}

impl Body {
    /// Its bytes, if there is one.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Body::Empty => None,
            Body::Event(bytes) | Body::Own(bytes) => Some(bytes),
        }
    }
}

/// The first byte of a request that is kept: what body it has.
const EMPTY: u8 = 0;
/// The body is the event, and not kept here.
pub const BODY_IS_EVENT: u8 = 1;
const OWN: u8 = 2;

impl Request {
    /// As it is kept: what body it has, the length of its head, its head, and its body unless that is the event.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = serde_json::json!([self.method, self.path, self.headers]).to_string();
        let (mark, own) = match &self.body {
            Body::Empty => (EMPTY, &[][..]),
            Body::Event(_) => (BODY_IS_EVENT, &[][..]),
            Body::Own(bytes) => (OWN, &bytes[..]),
        };
        let mut out = Vec::with_capacity(5 + head.len() + own.len());
        out.push(mark);
        out.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(own);
        out
    }

    /// Back from what is kept. `event` is the event that it was made of.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], event: &Bytes) -> Option<Self> {
        let (mark, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (head, own) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        let head: Json = serde_json::from_slice(head).ok()?;
        let text = |value: &Json| value.as_str().map(ToOwned::to_owned);
        let header = |pair: &Json| Some((text(&pair[0])?, text(&pair[1])?));
        Some(Request {
            method: text(&head[0])?,
            path: text(&head[1])?,
            headers: head[2].as_array()?.iter().map(header).collect::<Option<_>>()?,
            body: match *mark {
                EMPTY => Body::Empty,
                BODY_IS_EVENT => Body::Event(event.clone()),
                OWN => Body::Own(Bytes::copy_from_slice(own)),
                _ => return None,
            },
        })
    }
}

impl Request {
    /// What is wrong with a request that somebody wrote by hand; every mistake in it at once.
    #[must_use]
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if !METHODS.contains(&&*self.method) && self.method != "OPTIONS" {
            let method = self.method.escape_debug();
            mistakes.push(Mistake::new("method", format!("`{method}` is none of {}", METHODS.join(", "))));
        }
        if self.path.starts_with('/') {
            keep(check_path(&self.path), &mut mistakes);
        } else {
            mistakes.push(Mistake::new("path", "it begins with a slash, below the address of the service"));
        }
        for (name, value) in &self.headers {
            let place = format!("headers.{}", name.escape_debug());
            if keep(check_name(name, &place), &mut mistakes).is_some() {
                keep(check_value(value, &place), &mut mistakes);
            }
        }
        mistakes
    }
}

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Headers that say where a message ends and who talks to whom: never a rule's.
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
/// No path is longer: as much as the headers of a request to the hub may be.
const PATH_BYTES_MAX: usize = 32 * 1024;

impl Program {
    /// Compiles a rule; every mistake in it at once.
    pub fn new(rule: &RuleText<'_>) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let size = rule.body.map_or(0, |body| body.to_string().len()) + rule.path.len();
        if size > TEMPLATE_BYTES_MAX {
            return Err(vec![Mistake::new(
                "body",
                format!("templates may be {TEMPLATE_BYTES_MAX} bytes, not {size}"),
            )]);
        }
        let filter = rule.filter.and_then(|text| keep(Filter::new(text), &mut mistakes));
        let method = rule.method.to_ascii_uppercase();
        if !METHODS.contains(&&*method) {
            mistakes
                .push(Mistake::new("method", format!("`{}` is none of {}", rule.method, METHODS.join(", "))));
        }
        if !rule.path.starts_with('/') {
            mistakes.push(Mistake::new("path", "it begins with a slash, below the address of the service"));
        }
        let path = keep(Text::new(rule.path, "path"), &mut mistakes);
        if let Some(outline) = path.as_ref().map(Text::outline) {
            keep(check_path(&outline), &mut mistakes);
        }
        let headers =
            rule.headers.iter().filter_map(|(name, value)| header(name, value, &mut mistakes)).collect();
        let body = match rule.body.map(|body| Template::new(body, "body")) {
            Some(Err(more)) => {
                mistakes.extend(more);
                None
            }
            Some(Ok(body)) => Some(body),
            None => None,
        };
        let order = rule.order.and_then(|text| keep(Text::new(text, "ordering.key"), &mut mistakes));
        match path {
            Some(path) if mistakes.is_empty() => {
                Ok(Program { filter, method: method.into(), path, headers, body, order })
            }
            _ => Err(mistakes),
        }
    }

    /// Its condition, if it has one.
    #[must_use]
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// What the delivery of this event belongs together with, if the rule keeps an order.
    pub fn order(&self, view: &View<'_>, meter: &Meter) -> Result<Option<String>, Mistake> {
        let Some(order) = &self.order else { return Ok(None) };
        order.render(view, "ordering.key", (meter, ORDER_BYTES_MAX), as_it_is).map(Some)
    }

    /// The request for this event. `event` is the event as it came, for rules without a body of their own.
    pub fn render(&self, view: &View<'_>, event: &Bytes, meter: &Meter) -> Result<Request, Mistake> {
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
                Body::Own(template.render(view, "body", meter)?.into())
            }
            (Some(template), _) => Body::Own(template.render_plain(view, "body", meter)?.into()),
            (None, "GET" | "HEAD" | "DELETE") => Body::Empty,
            (None, _) => Body::Event(event.clone()),
        };
        if body.bytes().is_some_and(|body| body.len() > OUTPUT_BYTES_MAX) {
            return Err(super::mistake::too_large("body", OUTPUT_BYTES_MAX));
        }
        if body != Body::Empty && !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".into(), "application/json".into()));
        }
        Ok(Request { method: self.method.to_string(), path, headers, body })
    }
}

/// Whether the body is JSON. A text whose rule says that it is no JSON is sent as it is, without quotes.
fn is_json(headers: &[(String, String)]) -> bool {
    let kind = headers.iter().find(|(name, _)| name == "content-type");
    kind.is_none_or(|(_, kind)| kind.contains("json"))
}

fn keep<T>(made: Result<T, Mistake>, mistakes: &mut Vec<Mistake>) -> Option<T> {
    made.map_err(|mistake| mistakes.push(mistake)).ok()
}

fn header(name: &str, value: &str, mistakes: &mut Vec<Mistake>) -> Option<HeaderTemplate> {
    let place = format!("headers.{}", name.escape_debug());
    let name = keep(check_name(name, &place), mistakes)?;
    let value = keep(Text::new(value, &place), mistakes)?;
    Some(HeaderTemplate { name: name.into(), value })
}

/// The name in small letters.
fn check_name(name: &str, place: &str) -> Result<String, Mistake> {
    let small = name.to_ascii_lowercase();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(Mistake::new(place, "a header's name may hold letters, digits and hyphens"));
    }
    if FORBIDDEN.contains(&&*small) {
        return Err(Mistake::new(place, "this header belongs to the connection, and the hub sets it"));
    }
    Ok(small)
}

/// What an expression yields can't leave its place in a path: no slash, no question mark, no dots that climb.
fn percent_encode(value: &str, out: &mut Builder, meter: &Meter) -> Result<(), Fault> {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    if value.len() > PATH_BYTES_MAX {
        return Err(Fault::TooLarge);
    }
    meter.read(3 * value.len())?;
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || (byte == b'.' && value.len() > 2) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
    out.push(&encoded, meter)
}

fn check_path(path: &str) -> Result<(), Mistake> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Mistake::new("path", format!("it may have {PATH_BYTES_MAX} bytes, not {}", path.len())));
    }
    // What begins at `#` would not be sent at all; the others can't be.
    let sendable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>`#".contains(&byte);
    if !path.bytes().all(sendable) {
        return Err(Mistake::new("path", "it holds a space or a character that has to be percent-encoded"));
    }
    let before_query = path.split('?').next().unwrap_or_default();
    if climbs(before_query) {
        return Err(Mistake::new("path", "`..` would leave the address of the service"));
    }
    if path.starts_with("//") {
        return Err(Mistake::new("path", "two slashes in front would name another host"));
    }
    Ok(())
}

fn check_value(value: &str, place: &str) -> Result<(), Mistake> {
    let fine = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7F);
    if value.bytes().all(fine) {
        Ok(())
    } else {
        Err(Mistake::new(place, "a header's value may not hold line breaks or other control characters"))
    }
}
