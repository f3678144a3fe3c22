//! A message as a record of Kafka, and back.

use std::sync::Arc;

use rdkafka::Message as _;
use rdkafka::message::{BorrowedMessage, Header, Headers, OwnedHeaders};
use seawall_dist::Message;
use seawall_dist::messaging::{
    AGGREGATE_ID_HEADER, Delivery, EVENT_ID_HEADER, EVENT_TYPE_HEADER, FailureEvidence,
};

/// What a record takes beside its key, its headers and its payload.
const RECORD_OVERHEAD: usize = 70;

/// What a header takes beside its name and its value.
const HEADER_OVERHEAD: usize = 10;

/// The headers of a message on the wire: its own, its event id and its event type. The aggregate id is the key of the record.
pub(crate) fn headers_of(message: &Message) -> OwnedHeaders {
    let mut headers = OwnedHeaders::new_with_capacity(message.headers().len() + 2);
    for (key, value) in own_headers(message) {
        headers = headers.insert(Header { key, value: Some(value) });
    }
    headers
}

fn own_headers(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    let fields = [(EVENT_ID_HEADER, message.event_id()), (EVENT_TYPE_HEADER, message.event_type())];
    let is_field = |name: &str| name == EVENT_ID_HEADER || name == EVENT_TYPE_HEADER;
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let others = message.headers().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    fields.chain(others.filter(move |(name, _)| !is_field(name)))
}

/// The key that decides the partition; `None` for a message without an aggregate, which may go anywhere.
pub(crate) fn key_of(message: &Message) -> Option<&[u8]> {
    Some(message.aggregate_id().as_bytes()).filter(|key| !key.is_empty())
}

/// The number of bytes that a message takes as a record, rounded up.
pub(crate) fn size_of(message: &Message) -> usize {
    let headers = own_headers(message).map(|(name, value)| name.len() + value.len() + HEADER_OVERHEAD);
    RECORD_OVERHEAD + message.aggregate_id().len() + message.payload().len() + headers.sum::<usize>()
}

/// A record as the client gave it, in one piece of memory: what one thread allocates and another one frees costs both, and the
/// thread that receives has all records to copy.
#[derive(Debug)]
pub(crate) struct RawRecord {
    /// The headers, each a name and a value with their lengths before them; then the key and the payload.
    bytes: Vec<u8>,
    headers_end: usize,
    key_end: usize,
    has_key: bool,
    has_payload: bool,
    pub(crate) offset: i64,
    /// How many consumers died with it.
    deaths: u32,
}

/// The length of a header that has no value.
const NO_VALUE: u32 = u32::MAX;

impl RawRecord {
    pub(crate) fn of(record: &BorrowedMessage<'_>, deaths: u32) -> Self {
        let (key, payload) = (record.key(), record.payload());
        let headers = || record.headers().into_iter().flat_map(Headers::iter);
        let value_len = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        let header_len: usize = headers().map(|header| 8 + header.key.len() + value_len(header.value)).sum();
        let mut bytes = Vec::with_capacity(header_len + value_len(key) + value_len(payload));
        for header in headers() {
            // Neither is longer than a record, whose length is an i32 in the protocol.
            bytes.extend_from_slice(&(header.key.len() as u32).to_le_bytes());
            bytes.extend_from_slice(header.key.as_bytes());
            let length = header.value.map_or(NO_VALUE, |value| value.len() as u32);
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(header.value.unwrap_or_default());
        }
        bytes.extend_from_slice(key.unwrap_or_default());
        let key_end = bytes.len();
        bytes.extend_from_slice(payload.unwrap_or_default());
        let (has_key, has_payload) = (key.is_some(), payload.is_some());
        RawRecord {
            bytes,
            headers_end: header_len,
            key_end,
            has_key,
            has_payload,
            offset: record.offset(),
            deaths,
        }
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.has_key.then(|| &self.bytes[self.headers_end..self.key_end])
    }

    fn payload(&self) -> Option<&[u8]> {
        self.has_payload.then(|| &self.bytes[self.key_end..])
    }

    /// The number of bytes that it takes in memory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The headers. The value is missing where the header has none.
    fn headers(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        let mut rest = &self.bytes[..self.headers_end];
        std::iter::from_fn(move || {
            let name = std::str::from_utf8(take_piece(&mut rest)??).ok()?;
            Some((name, take_piece(&mut rest)?))
        })
    }
}

/// Takes a length and as many bytes from the front; `None` within if the length says that there is nothing.
#[expect(clippy::option_option, reason = "the end, and a header without a value")]
fn take_piece<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, after) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    if length == NO_VALUE {
        *rest = after;
        return Some(None);
    }
    let (piece, after) = after.split_at_checked(length as usize)?;
    *rest = after;
    Some(Some(piece))
}

/// A record that a consumer works on, with what a [`Message`] can't hold: keys and headers that are not text, and the absence
/// of a payload. A retry topic gets it as it came.
#[derive(Debug)]
pub(crate) struct ReceivedRecord {
    pub(crate) delivery: Arc<Delivery>,
    /// The key, if it is not text.
    raw_key: Option<Vec<u8>>,
    /// Headers whose values are not text.
    raw_headers: Vec<(String, Option<Vec<u8>>)>,
    is_tombstone: bool,
    /// The group that failed with it, if one did.
    group: Option<String>,
}

impl ReceivedRecord {
    /// Reads a record. One without an event id gets one from its position, which is the same at every delivery.
    pub(crate) fn of(record: &RawRecord, topic: &Arc<str>, partition: i32) -> Self {
        let (mut event_id, mut event_type, mut aggregate_id) = (String::new(), String::new(), String::new());
        let (mut headers, mut raw_headers) = (Vec::new(), Vec::new());
        for (name, value) in record.headers() {
            let Some(Ok(text)) = value.map(std::str::from_utf8) else {
                raw_headers.push((name.to_owned(), value.map(<[u8]>::to_vec)));
                continue;
            };
            match name {
                EVENT_ID_HEADER => text.clone_into(&mut event_id),
                EVENT_TYPE_HEADER => text.clone_into(&mut event_type),
                AGGREGATE_ID_HEADER => text.clone_into(&mut aggregate_id),
                name => headers.push((name.to_owned(), text.to_owned())),
            }
        }
        let offset = record.offset;
        if event_id.is_empty() {
            event_id = format!("{topic}-{partition}-{offset}");
        }
        let mut raw_key = None;
        match record.key().map(std::str::from_utf8) {
            Some(Ok(key)) => key.clone_into(&mut aggregate_id),
            Some(Err(_)) => raw_key = record.key().map(<[u8]>::to_vec),
            None => {}
        }
        let evidence = FailureEvidence::from_headers(&headers);
        let attempt = evidence.attempts().saturating_add(1).saturating_add(record.deaths);
        let payload = record.payload().unwrap_or_default();
        let message = Message::received(event_id, event_type, aggregate_id, payload).with_topic(&**topic);
        let message =
            headers.into_iter().fold(message, |message, (name, value)| message.with_header(name, value));
        let delivery = Delivery::new(message, topic.clone(), attempt)
            .with_position("partition", partition)
            .with_position("offset", offset);
        let (is_tombstone, group) = (!record.has_payload, evidence.consumer().map(str::to_owned));
        ReceivedRecord { delivery: Arc::new(delivery), raw_key, raw_headers, is_tombstone, group }
    }

    pub(crate) fn message(&self) -> &Message {
        self.delivery.message()
    }

    /// Returns true if another group failed with it. Retry topics belong to all groups of a topic.
    pub(crate) fn is_of_another(&self, group: &str) -> bool {
        self.group.as_deref().is_some_and(|failed| failed != group)
    }

    /// The key for another topic.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.raw_key.as_deref().or_else(|| key_of(self.message()))
    }

    /// The payload for another topic.
    pub(crate) fn payload(&self) -> Option<&[u8]> {
        Some(self.message().payload()).filter(|_| !self.is_tombstone)
    }

    /// The headers for another topic: `headers` in place of the message's own, and what is not text as it came.
    pub(crate) fn wire_headers(&self, headers: &[(String, String)]) -> OwnedHeaders {
        let mut wire = OwnedHeaders::new_with_capacity(headers.len() + self.raw_headers.len() + 2);
        let message = self.message();
        let fields = [(EVENT_ID_HEADER, message.event_id()), (EVENT_TYPE_HEADER, message.event_type())];
        for (key, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            wire = wire.insert(Header { key, value: Some(value) });
        }
        for (key, value) in headers {
            wire = wire.insert(Header { key, value: Some(value) });
        }
        for (key, value) in &self.raw_headers {
            wire = wire.insert(Header { key, value: value.as_ref() });
        }
        wire
    }
}
