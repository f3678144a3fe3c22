//! Which events a rule takes.

use super::View;
use super::engine::{Code, EVENT, Gap, Mistake};

/// A condition on events, like `data.total > 100`.
#[derive(Debug)]
pub struct Filter(Code);

/// What a filter says of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The rule takes it.
    Match,
    /// The rule does not take it.
    NoMatch,
    /// The rule does not take it, because the event does not have this.
    Missing(String),
    /// The rule does not take it, because the condition makes no sense for it.
    Wrong(String),
}

impl Filter {
    /// Compiles a condition. Without braces: it is an expression as a whole.
    pub fn new(text: &str) -> Result<Self, Mistake> {
        let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
        Code::new(inner, &EVENT).map(Filter).map_err(|reason| Mistake::new("filter", reason))
    }

    /// Whether the rule takes this event.
    #[must_use]
    pub fn judge(&self, view: &View) -> Verdict {
        match self.0.eval(view) {
            Ok(value) if value.is_true() => Verdict::Match,
            Ok(_) => Verdict::NoMatch,
            Err(Gap::Missing(what)) => Verdict::Missing(what),
            Err(Gap::Wrong(reason)) => Verdict::Wrong(reason),
        }
    }
}
