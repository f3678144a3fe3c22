//! Which events a rule takes.

use super::expression::{CompiledExpression, EVENT, ExpressionError};
use super::{Meter, TemplateContext, TemplateError};

/// A condition on events, like `data.total > 100`.
#[derive(Debug)]
pub struct Filter(CompiledExpression);

/// Whether an event passes a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FilterResult {
    /// The event passes.
    Match,
    /// The event does not pass.
    NoMatch,
    /// The event does not pass, because it lacks this field.
    Missing(String),
    /// The event does not pass, because the condition makes no sense for it.
    Wrong(String),
    /// It is unknown whether the event passes, because the condition costs too much.
    TooCostly(String),
}

impl Filter {
    /// Compiles a condition. Without braces: it is an expression as a whole.
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        let inner = text.trim().strip_prefix("{{").and_then(|text| text.strip_suffix("}}")).unwrap_or(text);
        CompiledExpression::new(inner, &EVENT)
            .map(Filter)
            .map_err(|reason| TemplateError::new("filter", reason))
    }

    /// Evaluates the filter on an event.
    #[must_use]
    pub fn judge(&self, view: &TemplateContext<'_>, meter: &Meter) -> FilterResult {
        match self.0.eval(view, meter, |value| Ok(value.is_true())) {
            Ok(true) => FilterResult::Match,
            Ok(false) => FilterResult::NoMatch,
            Err(ExpressionError::Missing(what)) => FilterResult::Missing(what),
            Err(ExpressionError::Wrong(reason)) => FilterResult::Wrong(reason),
            Err(ExpressionError::TooCostly(reason)) => FilterResult::TooCostly(reason),
            Err(ExpressionError::TooLarge) => {
                FilterResult::TooCostly(format!("`{}` makes too much", self.0.text()))
            }
        }
    }
}
