//! What an event says: as it is kept and sent, and whether two say the same.

use bytes::Bytes;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::accept::Incoming;
use crate::domain::event::Event;

/// The event as it is kept and sent: put together from texts, because the data is one already.
pub(super) fn payload(event: &Incoming, time: &str) -> Bytes {
    let data = event.data.as_str();
    let mut out = String::with_capacity(data.len() + 160);
    let field = |out: &mut String, name: &str, value: &str| {
        out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":");
        out.push_str(value);
    };
    let text = |value: &str| Json::from(value).to_string();
    field(&mut out, "id", &text(&event.id));
    field(&mut out, "type", &text(event.kind.as_str()));
    field(&mut out, "source", &text(&event.source));
    field(&mut out, "time", &text(time));
    if let Some(subject) = &event.subject {
        field(&mut out, "subject", &text(subject));
    }
    if !event.extensions.is_empty() {
        let extensions: Json = event.extensions.iter().cloned().collect();
        field(&mut out, "extensions", &extensions.to_string());
    }
    field(&mut out, "data", data);
    out.push('}');
    out.into_bytes().into()
}

/// Of what was sent, but for when and under which id: the same event sent again has the same.
pub(super) fn fingerprint(event: &Incoming) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    part(event.kind.as_str());
    part(&event.source);
    part(event.subject.as_deref().unwrap_or_default());
    for (name, value) in &event.extensions {
        part(name);
        part(&value.to_string());
    }
    part(event.data.as_str());
    hash.finalize().into()
}

/// Whether two events say the same in other words: fields in another order, other spaces.
pub(super) fn says_the_same(one: &Event, other: &Event) -> bool {
    let whole = |event: &Event| serde_json::from_slice::<Json>(&event.payload).unwrap_or_default();
    let (one, other) = (whole(one), whole(other));
    ["type", "source", "subject", "extensions", "data"].iter().all(|field| one[field] == other[field])
}
