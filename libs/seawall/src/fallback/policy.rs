//! What may stand in for an answer. Each kind is a type, so that a call knows at compile time what it has.

use std::future::Future;

use super::Answer;
use super::last_good::GoodAnswers;
use crate::error::Error;
use crate::event::FallbackKind;

/// What a call falls back to. Sealed: made by [`CallBuilder::or_value`](crate::CallBuilder::or_value) and its sisters.
pub trait Fallback<T, E>: sealed::Sealed {
    /// What the call returns: the bare value where there is no fallback, an [`Answer`] where there may be one.
    type Output;

    /// A good answer came.
    fn remember(&self, _good: &T) {}

    /// The value that stands in and what it is, if there is one.
    fn stand_in(self, error: &Error<E>) -> impl Future<Output = Option<(T, FallbackKind)>>;

    /// The answer as the call returns it.
    fn output(answer: Answer<T, E>) -> Self::Output;
}

/// A fallback that needs no runtime, for calls that block.
pub trait BlockingFallback<T, E>: Fallback<T, E> {
    /// The value that stands in and what it is, if there is one.
    fn stand_in_now(self, error: &Error<E>) -> Option<(T, FallbackKind)>;
}

/// No fallback.
#[derive(Clone, Copy, Debug)]
pub struct NoFallback;

/// No fallback, but an [`Answer`] that says who gave it.
#[derive(Clone, Copy, Debug)]
pub struct Tracked;

/// A value.
#[derive(Clone, Copy, Debug)]
pub struct Value<T>(pub(crate) T);

/// A function of the error.
#[derive(Clone, Copy, Debug)]
pub struct Function<F>(pub(crate) F);

/// A function of the error that may have nothing either.
#[derive(Clone, Copy, Debug)]
pub struct OtherValue<F>(pub(crate) F);

/// Another operation.
#[derive(Clone, Copy, Debug)]
pub struct OtherOperation<F>(pub(crate) F);

/// The last good value.
#[derive(Clone, Copy, Debug)]
pub struct LastGoodValue<L>(pub(crate) L);

/// One fallback, and if that has nothing, another.
#[derive(Clone, Copy, Debug)]
pub struct Then<A, B>(pub(crate) A, pub(crate) B);

impl<T, E> Fallback<T, E> for NoFallback {
    type Output = T;

    async fn stand_in(self, _: &Error<E>) -> Option<(T, FallbackKind)> {
        None
    }

    fn output(answer: Answer<T, E>) -> T {
        answer.into_value()
    }
}

impl<T, E> BlockingFallback<T, E> for NoFallback {
    fn stand_in_now(self, _: &Error<E>) -> Option<(T, FallbackKind)> {
        None
    }
}

/// Those that need no runtime: what they do is written once, and awaited where a runtime is.
macro_rules! at_once {
    ([$($generics:tt)*] $name:ty, |$this:ident, $error:ident| $value:expr $(, remember = |$kept:ident, $good:ident| $keep:expr)?) => {
        impl<T, E, $($generics)*> Fallback<T, E> for $name {
            type Output = Answer<T, E>;

            $(fn remember(&self, $good: &T) {
                let $kept = self;
                $keep
            })?

            async fn stand_in(self, error: &Error<E>) -> Option<(T, FallbackKind)> {
                self.stand_in_now(error)
            }

            fn output(answer: Answer<T, E>) -> Answer<T, E> {
                answer
            }
        }

        impl<T, E, $($generics)*> BlockingFallback<T, E> for $name {
            fn stand_in_now(self, $error: &Error<E>) -> Option<(T, FallbackKind)> {
                let $this = self;
                $value
            }
        }
    };
}

at_once!([] Tracked, |_this, _error| None);
at_once!([] Value<T>, |this, _error| Some((this.0, FallbackKind::Value)));
at_once!([F: FnOnce(&Error<E>) -> T] Function<F>, |this, error| {
    Some(((this.0)(error), FallbackKind::Function))
});
at_once!([E2, F: FnOnce(&Error<E>) -> Result<T, E2>] OtherValue<F>, |this, error| {
    Some(((this.0)(error).ok()?, FallbackKind::Other))
});
at_once!(
    [L: GoodAnswers<Value = T>] LastGoodValue<L>,
    |this, _error| Some((this.0.recall()?, FallbackKind::LastGood)),
    remember = |this, good| this.0.keep(good)
);

impl<T, E, E2, F, Fut> Fallback<T, E> for OtherOperation<F>
where
    F: FnOnce(&Error<E>) -> Fut,
    Fut: Future<Output = Result<T, E2>>,
{
    type Output = Answer<T, E>;

    fn stand_in(self, error: &Error<E>) -> impl Future<Output = Option<(T, FallbackKind)>> {
        let asked = (self.0)(error);
        async { Some((asked.await.ok()?, FallbackKind::Other)) }
    }

    fn output(answer: Answer<T, E>) -> Answer<T, E> {
        answer
    }
}

impl<T, E, A: Fallback<T, E>, B: Fallback<T, E>> Fallback<T, E> for Then<A, B> {
    type Output = Answer<T, E>;

    fn remember(&self, good: &T) {
        self.0.remember(good);
        self.1.remember(good);
    }

    async fn stand_in(self, error: &Error<E>) -> Option<(T, FallbackKind)> {
        match self.0.stand_in(error).await {
            Some(value) => Some(value),
            None => self.1.stand_in(error).await,
        }
    }

    fn output(answer: Answer<T, E>) -> Answer<T, E> {
        answer
    }
}

impl<T, E, A: BlockingFallback<T, E>, B: BlockingFallback<T, E>> BlockingFallback<T, E> for Then<A, B> {
    fn stand_in_now(self, error: &Error<E>) -> Option<(T, FallbackKind)> {
        self.0.stand_in_now(error).or_else(|| self.1.stand_in_now(error))
    }
}

mod sealed {
    use super::*;

    pub trait Sealed {}
    impl Sealed for NoFallback {}
    impl Sealed for Tracked {}
    impl<T> Sealed for Value<T> {}
    impl<F> Sealed for Function<F> {}
    impl<F> Sealed for OtherValue<F> {}
    impl<F> Sealed for OtherOperation<F> {}
    impl<L> Sealed for LastGoodValue<L> {}
    impl<A, B> Sealed for Then<A, B> {}
}
