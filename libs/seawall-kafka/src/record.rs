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

/// A record that a consumer received, with what a [`Message`] can't hold: keys and headers that are not text, and the absence
/// of a payload. A retry topic gets it as it came.
#[derive(Debug)]
pub(crate) struct ReceivedRecord {
    pub(crate) delivery: Arc<Delivery>,
    /// The key, if it is not text.
    raw_key: Option<Vec<u8>>,
    /// Headers whose values are not text.
    raw_headers: Vec<(String, Option<Vec<u8>>)>,
    is_tombstone: bool,
}

impl ReceivedRecord {
    /// Reads a record. `deaths` is the number of consumers that died with it.
    ///
    /// One without an event id gets one from its position, which is the same at every delivery.
    pub(crate) fn of(record: &BorrowedMessage<'_>, deaths: u32) -> Self {
        let (mut event_id, mut event_type, mut aggregate_id) = (String::new(), String::new(), String::new());
        let (mut headers, mut raw_headers) = (Vec::new(), Vec::new());
        for header in record.headers().into_iter().flat_map(Headers::iter) {
            let Some(Ok(value)) = header.value.map(std::str::from_utf8) else {
                raw_headers.push((header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
                continue;
            };
            match header.key {
                EVENT_ID_HEADER => value.clone_into(&mut event_id),
                EVENT_TYPE_HEADER => value.clone_into(&mut event_type),
                AGGREGATE_ID_HEADER => value.clone_into(&mut aggregate_id),
                name => headers.push((name.to_owned(), value.to_owned())),
            }
        }
        let (topic, partition, offset) = (record.topic(), record.partition(), record.offset());
        if event_id.is_empty() {
            event_id = format!("{topic}-{partition}-{offset}");
        }
        let mut raw_key = None;
        match record.key().map(std::str::from_utf8) {
            Some(Ok(key)) => key.clone_into(&mut aggregate_id),
            Some(Err(_)) => raw_key = record.key().map(<[u8]>::to_vec),
            None => {}
        }
        let attempt =
            FailureEvidence::from_headers(&headers).attempts().saturating_add(1).saturating_add(deaths);
        let message = Message::new(event_type, aggregate_id, record.payload().unwrap_or_default())
            .with_event_id(event_id)
            .with_topic(topic);
        let message =
            headers.into_iter().fold(message, |message, (name, value)| message.with_header(name, value));
        let delivery = Delivery::new(message, topic, attempt)
            .with_position("partition", partition)
            .with_position("offset", offset);
        let is_tombstone = record.payload().is_none();
        ReceivedRecord { delivery: Arc::new(delivery), raw_key, raw_headers, is_tombstone }
    }

    pub(crate) fn message(&self) -> &Message {
        self.delivery.message()
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
