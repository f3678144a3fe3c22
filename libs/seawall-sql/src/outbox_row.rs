//! How messages are written into rows, on every database.

use seawall::Fault;
use seawall::fault::Ran;
use seawall_dist::{Message, StoreError};

/// The most bytes of topic and aggregate id together: an entry of PostgreSQL's index has 2,704.
const NAMES_BYTES_MAX: usize = 2_000;

/// Refuses what the databases can't store. The database would refuse it too, and with it the caller's transaction.
pub(crate) fn check_message(message: &Message) -> Result<(), StoreError> {
    let refused = |why: &'static str| {
        Err(StoreError::new("writing to the outbox", Fault::business().ran(Ran::No), why))
    };
    if message.topic().len() + message.aggregate_id().len() > NAMES_BYTES_MAX {
        return refused("topic and aggregate id are longer than 2,000 bytes together");
    }
    let names = [message.event_id(), message.event_type(), message.topic(), message.aggregate_id()];
    if names.iter().any(|name| name.contains('\0')) {
        return refused("event id, event type, topic and aggregate id can't hold a NUL");
    }
    Ok(())
}

/// The headers as text: one `name: value` per line.
pub(crate) fn headers_text(message: &Message) -> String {
    let mut text = String::new();
    for (name, value) in message.headers() {
        escape(&mut text, name, true);
        text.push_str(": ");
        escape(&mut text, value, false);
        text.push('\n');
    }
    text
}

fn escape(text: &mut String, part: &str, is_name: bool) {
    for c in part.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\0' => text.push_str("\\0"),
            ':' if is_name => text.push_str("\\c"),
            c => text.push(c),
        }
    }
}

fn unescape(part: &str) -> String {
    let (mut text, mut chars) = (String::with_capacity(part.len()), part.chars());
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('\n'),
                Some('0') => text.push('\0'),
                Some('c') => text.push(':'),
                other => text.extend(other),
            },
            (c, false) => text.push(c),
        }
    }
    text
}

/// The message of a row.
pub(crate) fn message(
    event_id: String,
    event_type: String,
    topic: String,
    aggregate_id: String,
    headers: &str,
    payload: Vec<u8>,
) -> Message {
    let message = Message::new(event_type, aggregate_id, payload).with_event_id(event_id).with_topic(topic);
    // Other programs may write `name:value` as well.
    let lines = headers.split('\n').filter_map(|line| line.split_once(':'));
    lines.fold(message, |message, (name, value)| {
        message.with_header(unescape(name), unescape(value.strip_prefix(' ').unwrap_or(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_as_text() {
        let headers = [
            ("a", "1"),
            ("", ""),
            ("b:c", "x: y"),
            ("d", "line\nand \\n"),
            ("e", " spaces "),
            ("f\0", "\0 \\0"),
        ];
        let sent = headers
            .iter()
            .fold(Message::new("t", "a", ""), |message, (name, value)| message.with_header(*name, *value));
        let text = headers_text(&sent);
        let back = message(sent.event_id().into(), "t".into(), String::new(), "a".into(), &text, Vec::new());
        assert_eq!(back, sent);
    }
}
