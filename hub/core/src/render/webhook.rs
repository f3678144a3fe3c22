//! What a webhook is as an event: its kind and its id, taken from what was sent.

use minijinja::Value;
use serde_json::Value as Json;

use super::engine::{Mistake, WEBHOOK};
use super::text::Text;
use super::{View, convert};

/// How the events of a source are named, compiled.
#[derive(Debug)]
pub struct Naming {
    kind: Text,
    id: Option<Text>,
}

/// A webhook as expressions see it.
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// Names in small letters, and values. Never those that show who sent it.
    pub headers: &'a [(String, String)],
    /// Its body.
    pub data: &'a Json,
}

impl Naming {
    /// Compiles the texts of a source; every mistake in them at once.
    pub fn new(event_type: &str, event_id: Option<&str>) -> Result<Self, Vec<Mistake>> {
        let kind = Text::over(event_type, "eventType", &WEBHOOK);
        let id = event_id.map(|id| Text::over(id, "eventId", &WEBHOOK)).transpose();
        match (kind, id) {
            (Ok(kind), Ok(id)) => Ok(Naming { kind, id }),
            (kind, id) => Err(kind.err().into_iter().chain(id.err()).collect()),
        }
    }

    /// The kind of the event, and its id if the source says how to find one.
    pub fn name(&self, webhook: &Webhook<'_>) -> Result<(String, Option<String>), Mistake> {
        let headers = Value::from_pairs(
            webhook.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))),
        );
        let data = convert::value_of(webhook.data);
        let view = View(minijinja::context! { data, headers });
        let plain = |value: &str, out: &mut String| out.push_str(value);
        let kind = self.kind.render(&view, "eventType", plain)?;
        let id = self.id.as_ref().map(|id| id.render(&view, "eventId", plain)).transpose()?;
        Ok((kind, id))
    }
}
