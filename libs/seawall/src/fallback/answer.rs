//! An answer that says where it comes from.

use std::ops::Deref;

use crate::error::Error;

/// A value, and whether it is the real one.
///
/// It dereferences to the value, so that whoever does not care need not look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<T, E> {
    value: T,
    instead_of: Option<Error<E>>,
}

impl<T, E> Answer<T, E> {
    pub(super) fn real(value: T) -> Self {
        Answer { value, instead_of: None }
    }

    pub(super) fn fallback(value: T, error: Error<E>) -> Self {
        Answer { value, instead_of: Some(error) }
    }

    /// Whether it is a fallback.
    #[must_use]
    pub fn is_fallback(&self) -> bool {
        self.instead_of.is_some()
    }

    /// The error that it stands in for, if it is a fallback.
    #[must_use]
    pub fn instead_of(&self) -> Option<&Error<E>> {
        self.instead_of.as_ref()
    }

    /// The value.
    #[must_use]
    pub fn into_value(self) -> T {
        self.value
    }
}

impl<T, E> Deref for Answer<T, E> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
