//! What may stand in for an answer. Each kind is a type, so that a call knows at compile time what it has.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::Answer;
use super::last_good::GoodAnswers;
use crate::error::Error;
use crate::event::FallbackKind;

/// What a call falls back to. Sealed: made by [`CallBuilder::or_value`](crate::CallBuilder::or_value) and its sisters.
///
/// # Why not an `async fn`?
/// The compiler can't show that an `async fn` of a trait is `Send` wherever the types in it have lifetimes, so a call with a
/// fallback would fit into some tasks and not into others. A type with a name has no such trouble.
pub trait Fallback<T, E>: Sealed {
    /// What the call returns: the bare value where there is no fallback, an [`Answer`] where there may be one.
    type Output;

    /// The fallback at work.
    type Work;

    /// A good answer came.
    fn remember(&self, _good: &T) {}

    /// Begins to find a value that stands in. It may take the error along, and gives it back when it ends.
    fn begin(self, error: &mut Option<Error<E>>) -> Self::Work;

    /// The value that stands in and what it is, if there is one.
    fn poll_value(
        work: Pin<&mut Self::Work>,
        error: &mut Option<Error<E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(T, FallbackKind)>>;

    /// The answer as the call returns it.
    fn output(answer: Answer<T, E>) -> Self::Output;
}

/// A fallback that needs no runtime, for calls that block.
pub trait BlockingFallback<T, E>: Fallback<T, E> {
    /// The value that stands in and what it is, if there is one.
    fn value_now(self, error: &Error<E>) -> Option<(T, FallbackKind)>;
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

/// Those that need no runtime: what they do is written once, and is ready at once where a runtime is.
macro_rules! at_once {
    (
        [$($generics:tt)*] $name:ty,
        $output:ty = |$answer:ident| $out:expr,
        |$this:ident, $error:ident| $value:expr
        $(, remember = |$kept:ident, $good:ident| $keep:expr)?
    ) => {
        impl<T, E, $($generics)*> Fallback<T, E> for $name {
            type Output = $output;
            type Work = Ready<Option<(T, FallbackKind)>>;

            $(fn remember(&self, $good: &T) {
                let $kept = self;
                $keep
            })?

            fn begin(self, error: &mut Option<Error<E>>) -> Self::Work {
                ready(error.as_ref().and_then(|error| self.value_now(error)))
            }

            fn poll_value(
                work: Pin<&mut Self::Work>,
                _: &mut Option<Error<E>>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<(T, FallbackKind)>> {
                work.poll(cx)
            }

            fn output($answer: Answer<T, E>) -> $output {
                $out
            }
        }

        impl<T, E, $($generics)*> BlockingFallback<T, E> for $name {
            fn value_now(self, $error: &Error<E>) -> Option<(T, FallbackKind)> {
                let $this = self;
                $value
            }
        }
    };
}

at_once!([] NoFallback, T = |answer| answer.into_value(), |_this, _error| None);
at_once!([] Tracked, Answer<T, E> = |answer| answer, |_this, _error| None);
at_once!([] Value<T>, Answer<T, E> = |answer| answer, |this, _error| Some((this.0, FallbackKind::Value)));
at_once!(
    [F: FnOnce(&Error<E>) -> T] Function<F>,
    Answer<T, E> = |answer| answer,
    |this, error| Some(((this.0)(error), FallbackKind::Function))
);
at_once!(
    [E2, F: FnOnce(&Error<E>) -> Result<T, E2>] OtherValue<F>,
    Answer<T, E> = |answer| answer,
    |this, error| Some(((this.0)(error).ok()?, FallbackKind::Other))
);
at_once!(
    [L: GoodAnswers<Value = T>] LastGoodValue<L>,
    Answer<T, E> = |answer| answer,
    |this, _error| Some((this.0.recall()?, FallbackKind::LastGood)),
    remember = |this, good| this.0.keep(good)
);

impl<T, E, E2, F, Fut> Fallback<T, E> for OtherOperation<F>
where
    F: FnOnce(&Error<E>) -> Fut,
    Fut: Future<Output = Result<T, E2>>,
{
    type Output = Answer<T, E>;
    type Work = Fut;

    fn begin(self, error: &mut Option<Error<E>>) -> Fut {
        (self.0)(error.as_ref().expect("whoever had it before has given it back"))
    }

    fn poll_value(
        work: Pin<&mut Fut>,
        _: &mut Option<Error<E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(T, FallbackKind)>> {
        work.poll(cx).map(|asked| Some((asked.ok()?, FallbackKind::Other)))
    }

    fn output(answer: Answer<T, E>) -> Answer<T, E> {
        answer
    }
}

pin_project! {
    /// One fallback at work, and what comes after it.
    #[project = ThenProjected]
    #[derive(Debug)]
    pub enum ThenWork<A, B, W> {
        /// The first is at work.
        First { #[pin] work: A, second: Option<B> },
        /// The first had nothing.
        Second { #[pin] work: W },
    }
}

impl<T, E, A: Fallback<T, E>, B: Fallback<T, E>> Fallback<T, E> for Then<A, B> {
    type Output = Answer<T, E>;
    type Work = ThenWork<A::Work, B, B::Work>;

    fn remember(&self, good: &T) {
        self.0.remember(good);
        self.1.remember(good);
    }

    fn begin(self, error: &mut Option<Error<E>>) -> Self::Work {
        ThenWork::First { work: self.0.begin(error), second: Some(self.1) }
    }

    fn poll_value(
        mut work: Pin<&mut Self::Work>,
        error: &mut Option<Error<E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(T, FallbackKind)>> {
        loop {
            let second = match work.as_mut().project() {
                ThenProjected::Second { work } => return B::poll_value(work, error, cx),
                ThenProjected::First { work, second } => match ready!(A::poll_value(work, error, cx)) {
                    Some(value) => return Poll::Ready(Some(value)),
                    None => second.take().expect("it is taken once"),
                },
            };
            work.set(ThenWork::Second { work: second.begin(error) });
        }
    }

    fn output(answer: Answer<T, E>) -> Answer<T, E> {
        answer
    }
}

impl<T, E, A: BlockingFallback<T, E>, B: BlockingFallback<T, E>> BlockingFallback<T, E> for Then<A, B> {
    fn value_now(self, error: &Error<E>) -> Option<(T, FallbackKind)> {
        self.0.value_now(error).or_else(|| self.1.value_now(error))
    }
}

pub(super) use sealed::Sealed;

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
