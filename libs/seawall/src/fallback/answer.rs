//! An answer that says where it comes from.

use std::ops::Deref;

use crate::error::Error;
use crate::failover::Side;
use crate::fault::Fault;

/// A value, and whether it is the real one.
///
/// It dereferences to the value, so that whoever does not care need not look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<T, E> {
    value: T,
    side: Side,
    instead_of: Option<Error<E>>,
    fault: Option<Fault>,
}

impl<T, E> Answer<T, E> {
    pub(crate) fn real(value: T, side: Side) -> Self {
        Answer { value, side, instead_of: None, fault: None }
    }

    pub(crate) fn fallback(value: T, side: Side, error: Error<E>) -> Self {
        Answer { value, side, instead_of: Some(error), fault: None }
    }

    /// The peer's own answer, although it was judged a fault: no fallback stands in for it.
    pub(crate) fn judged(value: T, side: Side, fault: Fault) -> Self {
        Answer { value, side, instead_of: None, fault: Some(fault) }
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

    /// What the classifier made of it, if it is the peer's own answer and was judged a fault: a 404, say, for which no
    /// fallback stands in.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Which side of a [failover](crate::failover) gave it, or was asked last if it is a fallback; the primary, where there
    /// is only one.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
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
