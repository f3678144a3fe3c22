//! Rules at work: which events they match, and the exact request that they make of one.
//!
//! # Why expressions, and no statements?
//! A template here is a JSON value whose strings may hold expressions: `"{{ data.id }}"`. A string that is one whole expression
//! yields a value with its type, so a number stays a number and nothing can be injected into the document. Loops, macros and
//! includes would yield text that somebody has to take apart again, and are what a hostile template is made of; there are
//! none. Choices are expressions too: `"{{ 'express' if data.total > 100 else 'standard' }}"`.
//!
//! Everything has a bound: the length and depth of a template, the steps and the memory of a rendering, the size of what it
//! makes. A rendering is one rule applied to one event, and pays for all it does from one [`Meter`].

mod climb;
mod expression;
mod filter;
mod mistake;
mod request;
mod template;
mod text;
mod webhook;

pub use climb::climbs;
pub use expression::{EXPRESSION_BYTES_MAX, MEMORY_BYTES_MAX, Meter, Tree, WORK_MAX};
pub use filter::{Filter, FilterResult};
pub use mistake::TemplateError;
pub use request::{BODY_IS_EVENT, HeaderTemplate, RenderedRequest, RequestBody, RequestTemplate, RuleText};
pub use template::JsonTemplate;
pub use webhook::{Webhook, WebhookNaming};

use std::borrow::Cow;

/// An event as expressions see it: parsed once, shared by all rules. It has one value for each name that an expression may begin
/// with, in the order of these names.
#[derive(Clone, Debug)]
pub struct TemplateContext<'a>(Vec<Option<Tree<'a>>>);

/// The attributes of an event that expressions can read.
#[derive(Clone, Debug)]
pub struct EventFields<'a> {
    /// The id that the sender gave it.
    pub id: &'a str,
    pub kind: &'a str,
    /// The source that sent it.
    pub source: &'a str,
    /// When it happened.
    pub time: &'a str,
    /// The subject within the source.
    pub subject: Option<&'a str>,
    /// Other attributes of the event.
    pub extensions: &'a [(String, serde_json::Value)],
    pub data: Tree<'a>,
}

impl<'a> TemplateContext<'a> {
    /// Returns `id`, `type`, `source`, `time`, `subject`, `extensions` and `data` under these names. An absent subject is
    /// missing, and not null.
    #[must_use]
    pub fn new(said: EventFields<'a>) -> Self {
        let EventFields { id, kind, source, time, subject, extensions, data } = said;
        let field = |(name, value): &'a (String, serde_json::Value)| (Cow::Borrowed(&**name), value.into());
        let extensions = Tree::map(extensions.iter().map(field).collect());
        TemplateContext::of_parts(
            [id, kind, source, time],
            subject.map(|subject| text(subject)),
            extensions,
            data,
        )
    }

    /// Builds the context of a stored event from its payload and its id, type and source.
    #[must_use]
    pub fn of_payload(id: &'a str, kind: &'a str, source: &'a str, payload: &'a [u8]) -> Self {
        let mut whole = std::str::from_utf8(payload).map_or(Tree::Null, Tree::parse);
        let time = whole.take("time");
        let subject = whole.take("subject").filter(|subject| matches!(subject, Tree::Text(_)));
        let extensions = whole.take("extensions").filter(|extensions| matches!(extensions, Tree::Map(_)));
        let data = whole.take("data").unwrap_or(Tree::Null);
        let extensions = extensions.unwrap_or(Tree::Map(Box::default()));
        let mut view = TemplateContext::of_parts([id, kind, source, ""], subject, extensions, data);
        if let Some(time @ Tree::Text(_)) = time {
            view.0[3] = Some(time);
        }
        view
    }

    fn of_parts(
        texts: [&'a str; 4],
        subject: Option<Tree<'a>>,
        extensions: Tree<'a>,
        data: Tree<'a>,
    ) -> Self {
        let mut roots: Vec<Option<Tree<'a>>> = texts.into_iter().map(|one| Some(text(one))).collect();
        roots.extend([Some(data), subject, Some(extensions)]);
        TemplateContext(roots)
    }
}

fn text(text: &str) -> Tree<'_> {
    Tree::Text(Cow::Borrowed(text))
}

/// The maximum length of a template in bytes.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// The maximum size of a rendered text in bytes.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// The maximum depth of a template.
pub const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod tests;
