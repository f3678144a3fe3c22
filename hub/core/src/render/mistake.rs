//! What is wrong with a template.

use std::fmt;

use super::expression::Gap;

/// What is wrong with a template, or with an event that does not fit it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Where: `body.items[2].price`, `path`, `headers.x-order`.
    pub place: String,
    /// What, and what to write instead.
    pub reason: String,
}

impl Mistake {
    pub(super) fn new(place: &str, reason: impl Into<String>) -> Self {
        Mistake { place: place.into(), reason: reason.into() }
    }

    /// The same within something: `items` and then `[2].price`.
    pub(super) fn within(self, outer: &str) -> Self {
        Mistake { place: format!("{outer}{}", self.place), reason: self.reason }
    }

    /// An expression gave no value. `length_max` is what its text may be long.
    pub(super) fn of(gap: Gap, place: &str, length_max: usize) -> Self {
        match gap {
            Gap::Missing(what) => Mistake::new(
                place,
                format!(
                    "the event has no `{what}`; say what to take instead: `{{{{ {what} | default('…') }}}}`"
                ),
            ),
            Gap::TooLarge => too_large(place, length_max),
            Gap::Wrong(reason) | Gap::TooCostly(reason) => Mistake::new(place, reason),
        }
    }
}

pub(super) fn too_large(place: &str, length_max: usize) -> Mistake {
    Mistake::new(place, format!("what it makes is larger than {length_max} bytes"))
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Mistake {}
