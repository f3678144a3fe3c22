//! What is wrong with a template.

use std::fmt;

use super::expression::ExpressionError;

/// A mistake in a template, or an event that does not fit it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateError {
    /// The place of the mistake: `body.items[2].price`, `path`, `headers.x-order`.
    pub place: String,
    /// The mistake, and what to write instead.
    pub reason: String,
}

impl TemplateError {
    pub(super) fn new(place: &str, reason: impl Into<String>) -> Self {
        TemplateError { place: place.into(), reason: reason.into() }
    }

    /// Prefixes the place: `items` and then `[2].price`.
    pub(super) fn within(self, outer: &str) -> Self {
        TemplateError { place: format!("{outer}{}", self.place), reason: self.reason }
    }

    /// Converts the error of an expression. `length_max` is the maximum length of its text.
    pub(super) fn of(gap: ExpressionError, place: &str, length_max: usize) -> Self {
        match gap {
            ExpressionError::Missing(what) => TemplateError::new(
                place,
                format!(
                    "the event has no `{what}`; say what to take instead: `{{{{ {what} | default('…') }}}}`"
                ),
            ),
            ExpressionError::TooLarge => too_large(place, length_max),
            ExpressionError::Wrong(reason) | ExpressionError::TooCostly(reason) => {
                TemplateError::new(place, reason)
            }
        }
    }
}

pub(super) fn too_large(place: &str, length_max: usize) -> TemplateError {
    TemplateError::new(place, format!("what it makes is larger than {length_max} bytes"))
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for TemplateError {}
