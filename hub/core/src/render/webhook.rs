//! What a webhook is as an event: its kind and its id, taken from what was sent.

use std::borrow::Cow;

use super::expression::WEBHOOK;
use super::text::{TextTemplate, as_it_is};
use super::{Meter, OUTPUT_BYTES_MAX, TemplateContext, TemplateError, Tree, text};

/// The compiled expressions that give the events of a source their type and id.
#[derive(Debug)]
pub struct WebhookNaming {
    kind: TextTemplate,
    id: Option<TextTemplate>,
}

/// A webhook as expressions see it.
#[derive(Clone, Debug)]
pub struct Webhook<'a> {
    /// The headers with names in lower case, without those of the verification.
    pub headers: &'a [(String, String)],
    /// The parsed body.
    pub data: Tree<'a>,
}

impl WebhookNaming {
    /// Compiles the templates of a source, and returns all their mistakes at once.
    pub fn new(event_type: &str, event_id: Option<&str>) -> Result<Self, Vec<TemplateError>> {
        let kind = TextTemplate::over(event_type, "eventType", &WEBHOOK);
        let id = event_id.map(|id| TextTemplate::over(id, "eventId", &WEBHOOK)).transpose();
        match (kind, id) {
            (Ok(kind), Ok(id)) => Ok(WebhookNaming { kind, id }),
            (kind, id) => Err(kind.err().into_iter().chain(id.err()).collect()),
        }
    }

    /// Returns the type of the event, and its id if the source has a template for it.
    pub fn name(
        &self,
        webhook: Webhook<'_>,
        meter: &Meter,
    ) -> Result<(String, Option<String>), TemplateError> {
        let Webhook { headers, data } = webhook;
        let headers =
            Tree::map(headers.iter().map(|(name, value)| (Cow::Borrowed(&**name), text(value))).collect());
        let view = TemplateContext(vec![Some(data), Some(headers)]);
        let named =
            |one: &TextTemplate, place: &str| one.render(&view, place, (meter, OUTPUT_BYTES_MAX), as_it_is);
        let kind = named(&self.kind, "eventType")?;
        let id = self.id.as_ref().map(|id| named(id, "eventId")).transpose()?;
        Ok((kind, id))
    }
}
