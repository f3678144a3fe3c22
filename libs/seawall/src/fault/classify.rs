//! Who judges.

use std::error::Error as StdError;
use std::io;

use super::Fault;
use crate::error::Error;

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

/// The default: an answer is a success, and an error is what the first error in its `source` chain that we know
/// says: a [`Fault`] of your own, or an [`io::Error`].
///
/// What it does not know is a [`system`](Fault::system) fault, which is never retried: guessing that an unknown
/// failure may be repeated is how payments are made twice.
///
/// An operation that passes on the error of another guard inherits that guard's decision, if both run in the same
/// task: what was retried further in is not retried again, and what was rejected further in says nothing about this
/// guard's peer. The same holds for a guard in work that callers share, which is a task of its own (feature `task`).
/// [`Nested`] does the same wherever the other guard ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Causes;

impl<T, E: StdError + 'static> Classify<T, E> for Causes {
    #[inline]
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        match result {
            Ok(_) => None,
            Err(error) => Some(judge(of_chain(error))),
        }
    }
}

/// As [`Causes`], for errors that are behind a pointer: `anyhow::Error`, `Box<dyn Error + Send + Sync>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dynamic;

impl<T, E: AsRef<dyn StdError + Send + Sync>> Classify<T, E> for Dynamic {
    fn classify(&self, result: &Result<T, E>) -> Option<Fault> {
        match result {
            Ok(_) => None,
            Err(error) => Some(judge(of_chain(error.as_ref()))),
        }
    }
}

/// For an operation whose error is another guard's [`Error`], also where that guard ran in another task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nested;

impl<T, E> Classify<T, Error<E>> for Nested {
    fn classify(&self, result: &Result<T, Error<E>>) -> Option<Fault> {
        result.as_ref().err().map(Error::fault)
    }
}

/// What the first cause that we know says.
#[cold]
fn of_chain(error: &(dyn StdError + 'static)) -> Option<Fault> {
    let mut next = Some(error);
    // A chain that never ends is a bug of its author, and must not be ours.
    for _ in 0..64 {
        let Some(error) = next else { break };
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return Some(*fault);
        }
        #[cfg(feature = "task")]
        if let Some(crate::task::Failure::GivenUp(_, fault)) = error.downcast_ref() {
            return Some(*fault);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // An I/O error may carry the reason of a library further in; that one knows better.
            let carried = error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>());
            return Some(carried.copied().unwrap_or_else(|| Fault::of_io(error.kind())));
        }
        next = error.source();
    }
    None
}

fn judge(known: Option<Fault>) -> Fault {
    inherited(known).or(known).unwrap_or(Fault::system())
}

/// What a guard further in decided stands, if this is its error: if the causes say what that guard saw last, or nothing that
/// we know. Other causes are of something that happened after it.
#[cfg(feature = "tokio")]
fn inherited(known: Option<Fault>) -> Option<Fault> {
    let below = crate::guard::ambient::decided_below()?;
    known.is_none_or(|fault| below.seen.contains(&fault)).then_some(below.fault)
}

#[cfg(not(feature = "tokio"))]
fn inherited(_: Option<Fault>) -> Option<Fault> {
    None
}

/// What a guard decided in this very poll, if this is its error.
#[cfg(feature = "task")]
pub(crate) fn decided_by_guard(error: &(dyn StdError + 'static)) -> Option<Fault> {
    inherited(of_chain(error))
}
