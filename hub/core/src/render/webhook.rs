//! What a webhook is as an event: its kind and its id, taken from what was sent.

use std::borrow::Cow;

use super::expression::WEBHOOK;
use super::text::{Text, as_it_is};
use super::{Meter, Mistake, OUTPUT_BYTES_MAX, Tree, View, text};

/// How the events of a source are named, compiled.
#[derive(Debug)]
pub struct Naming {
    kind: Text,
    id: Option<Text>,
}

/// A webhook as expressions see it.
#[derive(Clone, Debug)]
pub struct Webhook<'a> {
    /// Names in small letters, and values. Never those that show who sent it.
    pub headers: &'a [(String, String)],
    /// Its body.
    pub data: Tree<'a>,
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
    pub fn name(&self, webhook: Webhook<'_>, meter: &Meter) -> Result<(String, Option<String>), Mistake> {
        let Webhook { headers, data } = webhook;
        let headers =
            Tree::map(headers.iter().map(|(name, value)| (Cow::Borrowed(&**name), text(value))).collect());
        let view = View(vec![Some(data), Some(headers)]);
        let named = |one: &Text, place: &str| one.render(&view, place, (meter, OUTPUT_BYTES_MAX), as_it_is);
        let kind = named(&self.kind, "eventType")?;
        let id = self.id.as_ref().map(|id| named(id, "eventId")).transpose()?;
        Ok((kind, id))
    }
}
