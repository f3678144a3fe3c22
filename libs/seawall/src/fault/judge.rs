//! How a call judges what its operation returned, whatever kind of error that is.
//!
//! An operation may fail with a type of its own, with `anyhow::Error`, `eyre::Report`, `Box<dyn Error>` or a plain `String`.
//! No single trait of the standard library covers these: `anyhow::Error` is no `Error`. So there is one implementation of
//! [`OperationError`] for each kind, told apart by a type that the compiler infers and nobody writes.

use std::borrow::Cow;
use std::error::Error as StdError;

use super::{Causes, Classify, Fault};

/// An error that a guard can judge by itself. `Kind` is inferred.
///
/// Every `std::error::Error` is one, and so are `anyhow::Error`, `eyre::Report`, `Box<dyn Error>` with or without
/// `Send + Sync`, texts and whole numbers; of the latter two nothing is known, so they are never retried. An operation may fail
/// with any other type too: say with [`classify`](crate::Guard::classify) what its values mean.
#[diagnostic::on_unimplemented(
    message = "a guard does not know what an error of type `{Self}` means",
    note = "implement `std::error::Error` for it, or say what it means with `.classify(|result: &Result<_, _>| ..)` before `.call(..)`"
)]
pub trait OperationError<Kind> {
    /// The error as a chain of causes, if it is one.
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        None
    }
}

/// The kinds of errors that [`OperationError`] tells apart.
pub mod kind {
    /// A `std::error::Error`.
    #[derive(Debug)]
    pub struct Standard;
    /// A pointer to one, like `anyhow::Error`.
    #[derive(Debug)]
    pub struct Indirect;
    /// A `Box<dyn Error>` that stays on its thread.
    #[derive(Debug)]
    pub struct Local;
    /// No error, but a value.
    #[derive(Debug)]
    pub struct Bare;
    /// Anything, because a classifier was given that knows it.
    #[derive(Debug)]
    pub struct Classified;
}

impl<E: StdError + 'static> OperationError<kind::Standard> for E {
    #[inline]
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self)
    }
}

impl<E: AsRef<dyn StdError + Send + Sync>> OperationError<kind::Indirect> for E {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.as_ref())
    }
}

impl OperationError<kind::Local> for Box<dyn StdError> {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&**self)
    }
}

macro_rules! plain {
    ($($name:ty),*) => { $(impl OperationError<kind::Bare> for $name {})* };
}

plain!(String, &'static str, Cow<'static, str>, (), bool, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// What judges the results of a call: [`Causes`], or a classifier that was given to the call. Sealed, and `Kind` is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't judge a `Result<{T}, {E}>`",
    note = "by itself a guard judges errors that are `std::error::Error`, `anyhow::Error` and the like; for others say what a failure is with `.classify(|result: &Result<_, _>| ..)`"
)]
pub trait Judge<T, E, Kind>: sealed::Sealed {
    /// The fault, or `None` for a success.
    fn judge(&self, result: &Result<T, E>) -> Option<Fault>;

    /// The error as a chain of causes, if it is one.
    fn view(error: &E) -> Option<&(dyn StdError + 'static)>;
}

impl<T, E: OperationError<Kind>, Kind> Judge<T, E, Kind> for Causes {
    #[inline]
    fn judge(&self, result: &Result<T, E>) -> Option<Fault> {
        match result {
            Ok(_) => None,
            Err(error) => Some(error.as_error().map_or(Fault::system(), Fault::of_error)),
        }
    }

    #[inline]
    fn view(error: &E) -> Option<&(dyn StdError + 'static)> {
        error.as_error()
    }
}

/// A classifier that was given to a call.
#[derive(Clone, Copy, Debug)]
pub struct Classifier<C>(pub(crate) C);

impl<T, E, C: Classify<T, E>> Judge<T, E, kind::Classified> for Classifier<C> {
    #[inline]
    fn judge(&self, result: &Result<T, E>) -> Option<Fault> {
        self.0.classify(result)
    }

    #[inline]
    fn view(error: &E) -> Option<&(dyn StdError + 'static)> {
        C::source(error)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Causes {}
    impl<C> Sealed for super::Classifier<C> {}
}
