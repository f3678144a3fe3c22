//! Rules at work: which events they match, and the exact request that they make of one.
//!
//! # Why expressions, and no statements?
//! A template here is a JSON value whose strings may hold expressions: `"{{ data.id }}"`. A string that is one whole expression
//! yields a value with its type, so a number stays a number and nothing can be injected into the document. Loops, macros and
//! includes would yield text that somebody has to take apart again, and are what a hostile template is made of; there are
//! none. Choices are expressions too: `"{{ 'express' if data.total > 100 else 'standard' }}"`.
//!
//! Everything has a bound: the length and depth of a template, the steps of an expression, the size of what it makes.

mod climb;
mod convert;
mod engine;
mod filter;
mod request;
mod template;
mod text;
mod webhook;

pub use climb::climbs;
pub use engine::Mistake;
pub use filter::{Filter, Verdict};
pub use request::{BODY_IS_EVENT, Body, HeaderTemplate, Program, Request, RuleText};
pub use template::Template;
pub use webhook::{Naming, Webhook};

use minijinja::Value;

/// An event as expressions see it: converted once, shared by all rules.
#[derive(Clone, Debug)]
pub struct View(Value);

/// What an event says of itself.
#[derive(Clone, Copy, Debug)]
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
    pub data: &'a serde_json::Value,
}

impl View {
    /// `id`, `type`, `source`, `time`, `subject`, `extensions` and `data`, under these names. A subject that is not there is
    /// missing, and not null.
    #[must_use]
    pub fn new(said: &Said<'_>) -> Self {
        let Said { id, kind, source, time, subject, extensions, data } = *said;
        let data = convert::value_of(data);
        let extensions = Value::from_pairs(
            extensions.iter().map(|(name, value)| (name.clone(), convert::value_of(value))),
        );
        let subject = subject.map_or(Value::UNDEFINED, Value::from);
        View(minijinja::context! { id, type => kind, source, time, subject, extensions, data })
    }
}

/// No template is longer.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// No expression is longer.
pub const EXPRESSION_BYTES_MAX: usize = 4 * 1024;
/// Nothing that is rendered is larger.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// No template is nested deeper.
pub const DEPTH_MAX: usize = 32;
/// No expression takes more steps.
pub const STEPS_MAX: u64 = 20_000;

#[cfg(test)]
mod tests;
