//! When there is a fallback.

use crate::error::{Error, Kind};
use crate::fault::{Class, Verdict};

/// Which failures a fallback stands in for.
///
/// By default all but business faults: a declined payment is an answer, and no default value should take its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FallbackFilter {
    classes: Vec<Class>,
    rejections: bool,
}

impl Default for FallbackFilter {
    fn default() -> Self {
        FallbackFilter {
            classes: vec![Class::Io, Class::Timeout, Class::Protocol, Class::System],
            rejections: true,
        }
    }
}

impl FallbackFilter {
    /// Only faults of these classes, and no rejections.
    #[must_use]
    pub fn classes(classes: impl IntoIterator<Item = Class>) -> Self {
        FallbackFilter { classes: classes.into_iter().collect(), rejections: false }
    }

    /// Only rejections: circuit open, rate limit, bulkhead full.
    #[must_use]
    pub fn rejections() -> Self {
        FallbackFilter { classes: Vec::new(), rejections: true }
    }

    /// Rejections too.
    #[must_use]
    pub fn or_rejections(mut self) -> Self {
        self.rejections = true;
        self
    }

    pub(crate) fn covers<E>(&self, error: &Error<E>) -> bool {
        let fault = error.last_fault();
        if error.kind() == Kind::Rejected || fault.verdict() == Verdict::Rejected {
            return self.rejections;
        }
        self.classes.contains(&fault.class())
    }
}

/// Whether the call was given up although trying again might have helped: what a dead-letter place is for.
pub(crate) fn is_given_up<E>(error: &Error<E>) -> bool {
    matches!(error.kind(), Kind::BudgetDenied | Kind::Exhausted | Kind::TimedOut)
}
