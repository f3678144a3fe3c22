//! Messages as RabbitMQ has them.
//!
//! | of a message | in AMQP |
//! |---|---|
//! | event id | property `message_id` |
//! | event type | property `type` |
//! | aggregate id | header `aggregate-id` |
//! | headers `content-type`, `content-encoding`, `correlation-id` | the properties of these names |
//! | other headers | headers, as text |

use lapin::BasicProperties;
use lapin::message::Delivery as ReceivedDelivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use seawall_dist::Message;
use seawall_dist::messaging::{AGGREGATE_ID_HEADER, FailureEvidence};

/// The delivery mode of a message that survives a restart of the server.
const PERSISTENT: u8 = 2;

/// The header in which a quorum queue counts how often it has delivered a message before.
const DELIVERY_COUNT: &str = "x-delivery-count";

/// Headers that the server writes. They tell of the way of one copy, and the next copy gets its own.
const SERVER_HEADERS: [&str; 10] = [
    "x-death",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    DELIVERY_COUNT,
    "x-acquired-count",
    "x-stream-offset",
];

/// Headers that make the server send copies to further queues.
const COPY_HEADERS: [&str; 2] = ["CC", "BCC"];

/// A text of at most 255 bytes. The client library panics at longer ones.
pub(crate) fn short(text: &str, what: &str) -> Result<ShortString, String> {
    ShortString::try_new(text).map_err(|_| format!("{what} has {} bytes, and the limit is 255", text.len()))
}

/// The properties of a message that is published for the first time.
pub(crate) fn properties_of(message: &Message) -> Result<BasicProperties, String> {
    let mut properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    if !message.event_id().is_empty() {
        properties = properties.with_message_id(short(message.event_id(), "the event id")?);
    }
    if !message.event_type().is_empty() {
        properties = properties.with_type(short(message.event_type(), "the event type")?);
    }
    let mut table = FieldTable::default();
    for (name, value) in message.headers() {
        match name.to_ascii_lowercase().as_str() {
            "content-type" => properties = properties.with_content_type(short(value, "the content type")?),
            "content-encoding" => {
                properties = properties.with_content_encoding(short(value, "the content encoding")?);
            }
            "correlation-id" => {
                properties = properties.with_correlation_id(short(value, "the correlation id")?);
            }
            reserved if SERVER_HEADERS.contains(&reserved) => {}
            // The first header of a name counts, as for the message itself.
            _ if table.contains_key(name) => {}
            _ => {
                table.insert(short(name, "the name of a header")?, text(value));
            }
        }
    }
    if !message.aggregate_id().is_empty() {
        table.insert(AGGREGATE_ID_HEADER.into(), text(message.aggregate_id()));
    }
    Ok(properties.with_headers(table))
}

/// The bytes of all headers together, about as they are sent.
pub(crate) fn header_bytes(properties: &BasicProperties) -> usize {
    properties.headers().as_ref().map_or(0, table_bytes)
}

fn table_bytes(table: &FieldTable) -> usize {
    table.inner().iter().map(|(name, value)| name.as_str().len() + 2 + value_bytes(value)).sum()
}

fn value_bytes(value: &AMQPValue) -> usize {
    match value {
        AMQPValue::LongString(text) => text.len() + 4,
        AMQPValue::ShortString(text) => text.as_str().len() + 1,
        AMQPValue::ByteArray(bytes) => bytes.len() + 4,
        AMQPValue::FieldTable(table) => table_bytes(table) + 4,
        AMQPValue::FieldArray(values) => {
            values.as_slice().iter().map(|value| value_bytes(value) + 1).sum::<usize>() + 4
        }
        _ => 9,
    }
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// The message of a delivery. One that has no id has an empty one: its delivery tag means nothing outside of its channel.
pub(crate) fn message_of(delivery: &mut ReceivedDelivery, queue: &str) -> Message {
    let payload = std::mem::take(&mut delivery.data);
    let properties = &delivery.properties;
    let of = |text: &Option<ShortString>| text.as_ref().map(|text| text.as_str().to_owned());
    let event_type = of(properties.kind()).unwrap_or_else(|| delivery.routing_key.to_string());
    let table = properties.headers().as_ref();
    let header = |name: &str| table.and_then(|table| table.inner().get(name)).and_then(value_text);
    let aggregate_id = header(AGGREGATE_ID_HEADER).unwrap_or_default();
    let event_id = of(properties.message_id()).unwrap_or_default();
    let mut message = Message::received(event_id, event_type, aggregate_id, payload).with_topic(queue);
    for (name, value) in [
        ("content-type", properties.content_type()),
        ("content-encoding", properties.content_encoding()),
        ("correlation-id", properties.correlation_id()),
    ] {
        if let Some(value) = value {
            message = message.with_header(name, value.as_str());
        }
    }
    for (name, value) in table.into_iter().flat_map(FieldTable::inner) {
        let name = name.as_str();
        if SERVER_HEADERS.contains(&name) || name == AGGREGATE_ID_HEADER {
            continue;
        }
        if let Some(value) = value_text(value) {
            message = message.with_header(name, value);
        }
    }
    message
}

/// A value as text; `None` for tables, arrays and bytes.
fn value_text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => Some(String::from_utf8_lossy(text.as_bytes()).into_owned()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        AMQPValue::Boolean(value) => Some(value.to_string()),
        AMQPValue::Float(value) => Some(value.to_string()),
        AMQPValue::Double(value) => Some(value.to_string()),
        AMQPValue::Timestamp(value) => Some(value.to_string()),
        AMQPValue::Void => Some(String::new()),
        value => number(value).map(|number| number.to_string()),
    }
}

fn number(value: &AMQPValue) -> Option<i64> {
    match *value {
        AMQPValue::ShortShortInt(value) => Some(value.into()),
        AMQPValue::ShortShortUInt(value) => Some(value.into()),
        AMQPValue::ShortInt(value) => Some(value.into()),
        AMQPValue::ShortUInt(value) => Some(value.into()),
        AMQPValue::LongInt(value) => Some(value.into()),
        AMQPValue::LongUInt(value) => Some(value.into()),
        AMQPValue::LongLongInt(value) => Some(value),
        _ => None,
    }
}

/// How often the queue has delivered this message before.
pub(crate) fn delivery_count(properties: &BasicProperties) -> u32 {
    let table = properties.headers().as_ref();
    let count = table.and_then(|table| table.inner().get(DELIVERY_COUNT)).and_then(number);
    count.map_or(0, |count| u32::try_from(count.max(0)).unwrap_or(u32::MAX))
}

/// The properties of a message that is passed on: as they came, with this evidence.
///
/// What would make the server drop, refuse or copy the message is left out: its time to live, the user that published it, further
/// addressees.
pub(crate) fn passed_on(properties: &BasicProperties, evidence: &FailureEvidence) -> BasicProperties {
    let mut table = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(FieldTable::inner) {
        let text = name.as_str();
        let is_evidence = FailureEvidence::strip(&[(text.to_owned(), String::new())]).is_empty();
        if !is_evidence && !SERVER_HEADERS.contains(&text) && !COPY_HEADERS.contains(&text) {
            table.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in evidence.apply(&[]) {
        table.insert(name.into(), text(&value));
    }
    let mut copy = BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(table);
    let copied = properties.clone();
    macro_rules! copy {
        ($($property:ident => $with:ident),*) => { $(if let Some(value) = copied.$property().clone() { copy = copy.$with(value); })* };
    }
    copy!(content_type => with_content_type, content_encoding => with_content_encoding, correlation_id => with_correlation_id,
        message_id => with_message_id, kind => with_type, reply_to => with_reply_to, timestamp => with_timestamp,
        app_id => with_app_id, priority => with_priority);
    copy
}

/// Why and where the server gave a message up by itself, newest first: `x-death` has a table for each queue and reason.
pub(crate) struct ServerDeath {
    pub(crate) queue: String,
    pub(crate) reason: String,
    pub(crate) count: u32,
    pub(crate) at_seconds: Option<u64>,
}

pub(crate) fn server_death(properties: &BasicProperties) -> Option<ServerDeath> {
    let AMQPValue::FieldArray(deaths) = properties.headers().as_ref()?.inner().get("x-death")? else {
        return None;
    };
    let AMQPValue::FieldTable(death) = deaths.as_slice().first()? else { return None };
    let death = death.inner();
    let text = |name: &str| death.get(name).and_then(value_text);
    Some(ServerDeath {
        queue: text("queue")?,
        reason: text("reason")?,
        count: death.get("count").and_then(number).and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
        at_seconds: death.get("time").and_then(|time| match time {
            AMQPValue::Timestamp(seconds) => Some(*seconds),
            _ => None,
        }),
    })
}
