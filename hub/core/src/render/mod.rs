//! Rules at work: which events they match, and the exact request that they make of one.
//!
//! # Why expressions, and no statements?
//! A template here is a JSON value whose strings may hold expressions: `"{{ data.id }}"`. A string that is one whole expression
//! yields a value with its type, so a number stays a number and nothing can be injected into the document. Loops, macros and
//! includes would yield text that somebody has to take apart again, and are what a hostile template is made of; there are
//! none. Choices are expressions too: `"{{ 'express' if data.total > 100 else 'standard' }}"`.
//!
//! Everything has a bound: the length and depth of a template, the steps of an expression, the size of what it makes.

mod convert;
mod engine;
mod filter;
mod request;
mod template;
mod text;

pub use engine::Mistake;
pub use filter::{Filter, Verdict};
pub use request::{HeaderTemplate, Program, Request, RuleText};
pub use template::Template;

use minijinja::Value;

/// An event as expressions see it: converted once, shared by all rules.
#[derive(Clone, Debug)]
pub struct View(Value);

impl View {
    /// `id`, `type`, `source`, `time` and `data`, under these names.
    #[must_use]
    pub fn new(id: &str, kind: &str, source: &str, time: &str, data: &serde_json::Value) -> Self {
        let data = convert::value_of(data);
        View(minijinja::context! { id, type => kind, source, time, data })
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
