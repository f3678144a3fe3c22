//! Which events a rule takes.

use super::expression::{Code, EVENT, Gap};
use super::{Meter, Mistake, View};

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
    /// Whether the rule takes it is not known, because the condition costs too much.
    TooCostly(String),
}

impl Filter {
    /// Compiles a condition. Without braces: it is an expression as a whole.
    pub fn new(text: &str) -> Result<Self, Mistake> {
        let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
        Code::new(inner, &EVENT).map(Filter).map_err(|reason| Mistake::new("filter", reason))
    }

    /// Whether the rule takes this event.
    #[must_use]
    pub fn judge(&self, view: &View<'_>, meter: &Meter) -> Verdict {
        match self.0.eval(view, meter, |value| Ok(value.is_true())) {
            Ok(true) => Verdict::Match,
            Ok(false) => Verdict::NoMatch,
            Err(Gap::Missing(what)) => Verdict::Missing(what),
            Err(Gap::Wrong(reason)) => Verdict::Wrong(reason),
            Err(Gap::TooCostly(reason)) => Verdict::TooCostly(reason),
            Err(Gap::TooLarge) => Verdict::TooCostly(format!("`{}` makes too much", self.0.text())),
        }
    }
}
