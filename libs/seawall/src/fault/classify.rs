//! Who judges.

use std::error::Error as StdError;
use std::io;

use super::Fault;
use crate::error::{Error, source_and_verdict};

/// Turns what an operation returned into a fault, or into `None` where it succeeded.
///
/// Any closure `Fn(&Result<T, E>) -> Option<Fault>` is one, and may judge answers as well as errors:
///
/// ```
/// # use seawall::{Classify, Fault};
/// struct Answer { status: u16 }
/// let by_status = |result: &Result<Answer, std::io::Error>| match result {
///     Ok(answer) => Fault::of_http(answer.status),
///     Err(error) => Some(Fault::of_io(error.kind())),
/// };
/// assert!(by_status.classify(&Ok(Answer { status: 200 })).is_none());
/// assert!(by_status.classify(&Ok(Answer { status: 500 })).unwrap().is_transient());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't judge a `Result<{T}, {E}>`",
    note = "by itself a guard judges errors that are `std::error::Error`; for others say what a failure is with `.classify(|result: &Result<_, _>| ..)`"
)]
pub trait Classify<T, E> {
    /// The fault, or `None` for a success.
    fn classify(&self, result: &Result<T, E>) -> Option<Fault>;

    /// The operation's error as a chain of causes: the `source` of the guard's error. A classifier that knows the type of the
    /// error says so here. A closure can't; what it judges is shown as its `Debug` text, unless it is wrapped in [`Chained`].
    #[must_use]
    fn source(_error: &E) -> Option<&(dyn StdError + 'static)>
    where
        Self: Sized,
    {
        None
    }
}

impl<T, E, F> Classify<T, E> for F
where
    F: Fn(&Result<T, E>) -> Option<Fault>,
{
    #[inline]
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        self(result)
    }
}

/// A closure that judges results with a `std::error::Error`, and passes that error on as the `source` of the guard's.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Fault, Guard, fault::Chained};
/// use std::{error::Error, io};
/// let disk = Guard::builder("disk").build()?;
/// let judge = |result: &io::Result<()>| result.as_ref().err().map(|_| Fault::business());
/// let error = disk.classify(Chained(judge)).call(|_| async { Err(io::Error::other("worn out")) }).await.unwrap_err();
/// assert_eq!(error.source().unwrap().to_string(), "worn out");
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chained<F>(pub F);

impl<T, E, F> Classify<T, E> for Chained<F>
where
    E: StdError + 'static,
    F: Fn(&Result<T, E>) -> Option<Fault>,
{
    #[inline]
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        (self.0)(result)
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

/// The default: an answer is a success, and an error is what the first error in its chain of causes that we know
/// says: the verdict of another guard, a [`Fault`] of your own, or an [`io::Error`].
///
/// What it does not know is a [`system`](Fault::system) fault, which is never retried: guessing that an unknown
/// failure may be repeated is how payments are made twice.
///
/// An operation that passes on the error of another guard, wrapped or not, inherits that guard's decision: what was retried
/// further in is not retried again, and what was rejected further in says nothing about this guard's peer. The decision is in
/// the error itself, so it does not matter where and when that guard ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Causes;

impl<T, E: StdError + 'static> Classify<T, E> for Causes {
    #[inline]
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        result.as_ref().err().map(|error| Fault::of_error(error))
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

/// As [`Causes`], for errors that are behind a pointer: `anyhow::Error`, `Box<dyn Error + Send + Sync>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dynamic;

impl<T, E: AsRef<dyn StdError + Send + Sync>> Classify<T, E> for Dynamic {
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        result.as_ref().err().map(|error| Fault::of_error(error.as_ref()))
    }

    fn source(error: &E) -> Option<&(dyn StdError + 'static)> {
        Some(error.as_ref())
    }
}

/// For an operation whose error is another guard's [`Error`], whatever that guard's operation fails with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nested;

impl<T, E: std::fmt::Debug + 'static> Classify<T, Error<E>> for Nested {
    fn classify(&self, result: &Result<T, Error<E>>) -> Option<Fault> {
        result.as_ref().err().map(Error::fault)
    }

    fn source(error: &Error<E>) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

impl Fault {
    /// What an error means by its causes, as [`Causes`] judges it. For classifiers that judge answers themselves and leave
    /// errors to the default: `Err(error) => Some(Fault::of_error(error))`.
    #[must_use]
    pub fn of_error(error: &(dyn StdError + 'static)) -> Self {
        of_chain(error).unwrap_or(Fault::system())
    }
}

/// What the first cause that we know says.
#[cold]
fn of_chain(error: &(dyn StdError + 'static)) -> Option<Fault> {
    walk(error, |error, verdict| {
        if verdict.is_some() {
            return verdict;
        }
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return Some(*fault);
        }
        #[cfg(feature = "http")]
        if let Some(fault) = crate::client::known(error) {
            return Some(fault);
        }
        let error = error.downcast_ref::<io::Error>()?;
        // An I/O error may carry the reason of a library further in; that one knows better.
        let carried = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>());
        Some(carried.copied().unwrap_or_else(|| Fault::of_io(error.kind())))
    })
}

/// The verdict of a guard further in that stands behind an error, if one does and nothing else explains the error before it.
#[cold]
pub(crate) fn inner_verdict(error: &(dyn StdError + 'static)) -> Option<Fault> {
    walk(error, |error, verdict| match verdict {
        Some(verdict) => Some(Some(verdict)),
        None => (error.is::<Fault>() || error.is::<io::Error>()).then_some(None),
    })?
}

/// Goes through the causes of an error until `look` has found something.
fn walk<R>(
    error: &(dyn StdError + 'static),
    look: impl Fn(&(dyn StdError + 'static), Option<Fault>) -> Option<R>,
) -> Option<R> {
    let mut next = Some(error);
    // A chain that never ends is a bug of its author, and must not be ours.
    for _ in 0..64 {
        let error = next?;
        let (source, verdict) = source_and_verdict(error);
        if let Some(found) = look(error, verdict) {
            return Some(found);
        }
        next = source;
    }
    None
}
