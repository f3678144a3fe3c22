//! What a guard runs.

use std::future::Future;

use super::Attempt;

/// Something that can be tried several times.
///
/// Every `FnMut(Attempt) -> impl Future<Output = Result<T, E>>` is one; each call of the closure is an attempt.
pub trait Operation {
    /// What an attempt yields.
    type Output;
    /// How an attempt fails.
    type Error;
    /// An attempt under way.
    type Future: Future<Output = Result<Self::Output, Self::Error>>;

    /// Starts an attempt.
    fn start(&mut self, attempt: Attempt) -> Self::Future;
}

impl<F, Fut, T, E> Operation for F
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    type Output = T;
    type Error = E;
    type Future = Fut;

    #[inline]
    fn start(&mut self, attempt: Attempt) -> Fut {
        self(attempt)
    }
}
