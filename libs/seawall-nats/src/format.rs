//! A message of the project as a message of NATS, and back.

use std::hash::{DefaultHasher, Hash, Hasher};

use async_nats::header::{NATS_EXPECTED_STREAM, NATS_MESSAGE_ID};
use async_nats::{HeaderMap, HeaderName, HeaderValue};
use seawall::Fault;
use seawall::fault::Ran;
use seawall_dist::deadletter::GENERATION_HEADER;
use seawall_dist::messaging::{AGGREGATE_ID_HEADER, EVENT_ID_HEADER, EVENT_TYPE_HEADER};
use seawall_dist::{Message, PublishError};

/// The header that JetStream recognises a repeated message by.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// The headers that JetStream reads when a message is published. They say nothing about a message that was delivered.
const INSTRUCTIONS: [&str; 5] = [
    MESSAGE_ID,
    "Nats-Expected-Stream",
    "Nats-Expected-Last-Sequence",
    "Nats-Expected-Last-Subject-Sequence",
    "Nats-Expected-Last-Msg-Id",
];

/// Checks the subject of a message: tokens with dots between them, no wildcards, no spaces.
pub(crate) fn check_subject(subject: &str) -> Result<(), String> {
    let is_wrong = |token: &str| {
        token.is_empty()
            || token == "*"
            || token == ">"
            || token.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    if subject.is_empty() {
        return Err(
            "the message has no subject: set its topic, or a default subject of the publisher".to_owned()
        );
    }
    if subject.split('.').any(is_wrong) {
        return Err(format!(
            "`{}` is not a subject to publish to: it has a wildcard, a space or an empty part",
            subject.escape_debug()
        ));
    }
    Ok(())
}

/// The headers of a message. JetStream recognises a repeated message by `Nats-Msg-Id`.
pub(crate) fn headers_of(message: &Message, stream: Option<&str>) -> Result<HeaderMap, PublishError> {
    let mut headers = HeaderMap::new();
    for (name, value) in message.headers() {
        if !is_instruction(name) {
            append(&mut headers, name, value)?;
        }
    }
    for (name, value) in
        [(EVENT_TYPE_HEADER, message.event_type()), (AGGREGATE_ID_HEADER, message.aggregate_id())]
    {
        if !value.is_empty() {
            headers.insert(name_of(name)?, value_of(name, value)?);
        }
    }
    let id = message_id(message);
    if id != message.event_id() {
        headers.insert(name_of(EVENT_ID_HEADER)?, value_of(EVENT_ID_HEADER, message.event_id())?);
    }
    if !id.is_empty() {
        headers.insert(NATS_MESSAGE_ID, value_of(MESSAGE_ID, &id)?);
    }
    if let Some(stream) = stream {
        headers.insert(NATS_EXPECTED_STREAM, value_of("Nats-Expected-Stream", stream)?);
    }
    Ok(headers)
}

/// The headers of the letter of a message: its own, with the evidence among them. What can't be carried is left out, because a
/// letter with a header less is better than no letter.
pub(crate) fn letter_headers(message: &Message, headers: &[(String, String)]) -> HeaderMap {
    let own = [
        (EVENT_ID_HEADER, message.event_id()),
        (EVENT_TYPE_HEADER, message.event_type()),
        (AGGREGATE_ID_HEADER, message.aggregate_id()),
    ];
    let own = own.into_iter().filter(|(_, value)| !value.is_empty());
    let mut map = HeaderMap::new();
    for (name, value) in headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(own) {
        let _ = append(&mut map, name, value);
    }
    map
}

/// What JetStream recognises a message by within its window: the event id. A replay is a message of its own, or JetStream would
/// drop one that follows its original within the window, and say that it has it.
fn message_id(message: &Message) -> String {
    let id = message.event_id();
    match message.header(GENERATION_HEADER) {
        Some(generation) if !id.is_empty() => {
            // A letter that was edited is replayed with the same number as the letter that it is a copy of.
            let mut hasher = DefaultHasher::new();
            message.payload().hash(&mut hasher);
            format!("{id}:replay:{generation}:{:016x}", hasher.finish())
        }
        _ => id.to_owned(),
    }
}

/// The message that was delivered on a subject.
pub(crate) fn message_of(subject: &str, headers: Option<&HeaderMap>, payload: &[u8]) -> Message {
    let mut own = OwnHeaders::default();
    let mut others = Vec::new();
    for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
        let name: &str = name.as_ref();
        match own.field(name) {
            Some(field) => *field = values.first().map(HeaderValue::as_str),
            None if is_instruction(name) => {}
            None => others.extend(values.iter().map(|value| (name, value.as_str()))),
        }
    }
    let event_id = own.event_id.or(own.message_id).unwrap_or_default();
    let (event_type, aggregate_id) =
        (own.event_type.unwrap_or_default(), own.aggregate_id.unwrap_or_default());
    let message = Message::received(event_id, event_type, aggregate_id, payload).with_topic(subject);
    others.into_iter().fold(message, |message, (name, value)| message.with_header(name, value))
}

/// The headers that are fields of a message.
#[derive(Default)]
struct OwnHeaders<'a> {
    event_id: Option<&'a str>,
    message_id: Option<&'a str>,
    event_type: Option<&'a str>,
    aggregate_id: Option<&'a str>,
}

impl<'a> OwnHeaders<'a> {
    fn field(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        let fields = [
            (EVENT_ID_HEADER, &mut self.event_id),
            (MESSAGE_ID, &mut self.message_id),
            (EVENT_TYPE_HEADER, &mut self.event_type),
            (AGGREGATE_ID_HEADER, &mut self.aggregate_id),
        ];
        fields.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, field)| field)
    }
}

fn is_instruction(name: &str) -> bool {
    INSTRUCTIONS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn append(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), PublishError> {
    headers.append(name_of(name)?, value_of(name, value)?);
    Ok(())
}

fn name_of(name: &str) -> Result<HeaderName, PublishError> {
    let wrong = || refused(format!("`{}` can't be the name of a header", name.escape_debug()));
    // The client library takes an empty name, and then writes a line that no client can read.
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong());
    }
    name.parse().map_err(|_| wrong())
}

fn value_of(name: &str, value: &str) -> Result<HeaderValue, PublishError> {
    let wrong = || refused(format!("the value of the header `{name}` has a line break in it"));
    value.parse().map_err(|_| wrong())
}

/// A message that can't be sent as it is.
pub(crate) fn refused(reason: String) -> PublishError {
    PublishError::new(Fault::business().ran(Ran::No), reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-6: a message is the same after it went through NATS, and JetStream recognises it by its event id.
    #[test]
    fn adp_6_a_message_survives_its_headers() {
        let message = Message::new("OrderPaid", "order-17", "{}")
            .with_event_id("e-1")
            .with_topic("orders.paid")
            .with_header("traceparent", "00-1-2-01");
        let headers = headers_of(&message, Some("ORDERS")).unwrap();
        assert_eq!(headers.get("Nats-Msg-Id").unwrap().as_str(), "e-1");
        assert_eq!(headers.get("Nats-Expected-Stream").unwrap().as_str(), "ORDERS");
        assert_eq!(message_of("orders.paid", Some(&headers), b"{}"), message);
    }

    /// ADP-6, CRD-7: a replay is not the duplicate of its original, a repeated replay is one of the first, and consumers see
    /// the event id that the message had.
    #[test]
    fn adp_6_a_replay_is_a_message_of_its_own_for_jetstream() {
        let replay = |generation: &str, payload: &str| {
            Message::new("OrderPaid", "order-17", payload)
                .with_event_id("e-1")
                .with_header(GENERATION_HEADER, generation)
        };
        let id =
            |message: &Message| headers_of(message, None).unwrap().get("Nats-Msg-Id").unwrap().to_string();
        assert_ne!(id(&replay("1", "{}")), "e-1");
        assert_eq!(id(&replay("1", "{}")), id(&replay("1", "{}")));
        assert_ne!(id(&replay("1", "{}")), id(&replay("2", "{}")));
        assert_ne!(id(&replay("1", "{}")), id(&replay("1", "{\"edited\":1}")));
        let headers = headers_of(&replay("1", "{}"), None).unwrap();
        assert_eq!(message_of("orders", Some(&headers), b"{}").event_id(), "e-1");
    }

    /// ADP-6: what NATS can't carry is refused before it is sent.
    #[test]
    fn adp_6_subjects_and_headers_are_checked() {
        for wrong in ["", "orders.*", "orders.>", "orders..paid", "orders paid", ".a", "a."] {
            assert!(check_subject(wrong).is_err(), "{wrong}");
        }
        assert!(check_subject("orders.paid-2_x").is_ok());
        for (name, value) in [("a b:", "c"), ("ok", "line\nbreak"), ("", "x")] {
            let message = Message::new("E", "a", "").with_header(name, value);
            let error = headers_of(&message, None).unwrap_err();
            assert!(!error.fault().is_transient(), "{name:?}: {error}");
        }
    }
}
