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
pub use filter::{Filter, Verdict};
pub use mistake::Mistake;
pub use request::{BODY_IS_EVENT, Body, HeaderTemplate, Program, Request, RuleText};
pub use template::Template;
pub use webhook::{Naming, Webhook};

use std::borrow::Cow;

/// An event as expressions see it: taken apart once, shared by all rules. One value for each name that an expression may
/// begin with, in the order of these names.
#[derive(Clone, Debug)]
pub struct View<'a>(Vec<Option<Tree<'a>>>);

/// What an event says of itself.
#[derive(Clone, Debug)]
pub struct Said<'a> {
    /// What the sender calls it.
    pub id: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Where it comes from.
    pub source: &'a str,
    /// When it happened.
    pub time: &'a str,
    /// What of the source it is about.
    pub subject: Option<&'a str>,
    /// Anything else that the sender said about it.
    pub extensions: &'a [(String, serde_json::Value)],
    /// What it is about.
    pub data: Tree<'a>,
}

impl<'a> View<'a> {
    /// `id`, `type`, `source`, `time`, `subject`, `extensions` and `data`, under these names. A subject that is not there is
    /// missing, and not null.
    #[must_use]
    pub fn new(said: Said<'a>) -> Self {
        let Said { id, kind, source, time, subject, extensions, data } = said;
        let field = |(name, value): &'a (String, serde_json::Value)| (Cow::Borrowed(&**name), value.into());
        let extensions = Tree::map(extensions.iter().map(field).collect());
        View::of_parts([id, kind, source, time], subject.map(|subject| text(subject)), extensions, data)
    }

    /// An event that is kept, from what is kept of it. What it was named when it came is given.
    #[must_use]
    pub fn of_payload(id: &'a str, kind: &'a str, source: &'a str, payload: &'a [u8]) -> Self {
        let mut whole = std::str::from_utf8(payload).map_or(Tree::Null, Tree::parse);
        let time = whole.take("time");
        let subject = whole.take("subject").filter(|subject| matches!(subject, Tree::Text(_)));
        let extensions = whole.take("extensions").filter(|extensions| matches!(extensions, Tree::Map(_)));
        let data = whole.take("data").unwrap_or(Tree::Null);
        let extensions = extensions.unwrap_or(Tree::Map(Box::default()));
        let mut view = View::of_parts([id, kind, source, ""], subject, extensions, data);
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
        View(roots)
    }
}

fn text(text: &str) -> Tree<'_> {
    Tree::Text(Cow::Borrowed(text))
}

/// No template is longer.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Nothing that is rendered is larger.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// No template is nested deeper.
pub const DEPTH_MAX: usize = 32;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod tests;
