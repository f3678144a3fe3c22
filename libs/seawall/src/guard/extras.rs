//! What a call brings along beside the guard's policies: hedges, fallbacks, a place for dead letters, several sides.
//!
//! Each has a place of its own in [`Extras`], so that they combine freely and in any order of building.

use std::fmt;
use std::future::Future;

use super::CallBuilder;
use crate::error::Error;
use crate::failover::Failover;
use crate::fallback::{
    FallbackFilter, Function, GoodAnswers, LastGoodValue, NoFallback, OtherOperation, OtherValue, Then, Value,
};

/// Nothing but the guard's own policies: the call is a plain [`Call`](super::Call).
#[derive(Clone, Copy, Debug)]
pub struct Plain;

/// What a call brings along beside the guard's policies.
pub struct Extras<'g, H, F, D> {
    pub(crate) hedging: H,
    pub(crate) fallback: F,
    pub(crate) dead_letter: D,
    /// What the guard says, if nothing else is said.
    pub(crate) when: Option<FallbackFilter>,
    pub(crate) failover: Option<&'g Failover>,
}

/// No hedges.
#[derive(Clone, Copy, Debug)]
pub struct Unhedged;

/// Hedges, as the guard's [`hedge`](super::GuardBuilder::hedge) says.
#[derive(Clone, Copy, Debug)]
pub struct Hedging;

/// No place for dead letters.
#[derive(Clone, Copy, Debug)]
pub struct NoDeadLetter;

/// What takes a dead letter. Sealed: a closure, or nothing.
pub trait DeadLetterSink<E>: sealed::Sink<E> {}

impl<E> DeadLetterSink<E> for NoDeadLetter {}

impl<E, D: FnOnce(&Error<E>)> DeadLetterSink<E> for D {}

/// The extras of a call, whether there are any or not. Sealed.
pub trait IntoExtras<'g>: sealed::IntoExtras<'g> {}

impl<'g, X: sealed::IntoExtras<'g>> IntoExtras<'g> for X {}

pub(crate) mod sealed {
    use super::{Error, Extras, NoDeadLetter, NoFallback, Plain, Unhedged};

    pub trait IntoExtras<'g> {
        type Hedging;
        type Fallback;
        type DeadLetter;
        fn into_extras(self) -> Extras<'g, Self::Hedging, Self::Fallback, Self::DeadLetter>;
    }

    impl<'g> IntoExtras<'g> for Plain {
        type Hedging = Unhedged;
        type Fallback = NoFallback;
        type DeadLetter = NoDeadLetter;

        fn into_extras(self) -> Extras<'g, Unhedged, NoFallback, NoDeadLetter> {
            Extras::new(NoFallback, None)
        }
    }

    impl<'g, H, F, D> IntoExtras<'g> for Extras<'g, H, F, D> {
        type Hedging = H;
        type Fallback = F;
        type DeadLetter = D;

        fn into_extras(self) -> Self {
            self
        }
    }

    /// Whether attempts may start beside one another.
    #[cfg(feature = "tokio")]
    pub trait HedgeMode {
        const HEDGED: bool;
    }

    #[cfg(feature = "tokio")]
    impl HedgeMode for Unhedged {
        const HEDGED: bool = false;
    }

    #[cfg(feature = "tokio")]
    impl HedgeMode for super::Hedging {
        const HEDGED: bool = true;
    }

    pub trait Sink<E> {
        /// Whether anything is kept.
        const KEEPS: bool = true;

        fn take(self, error: &Error<E>);
    }

    impl<E> Sink<E> for NoDeadLetter {
        const KEEPS: bool = false;

        fn take(self, _: &Error<E>) {}
    }

    impl<E, D: FnOnce(&Error<E>)> Sink<E> for D {
        fn take(self, error: &Error<E>) {
            self(error);
        }
    }
}

impl<'g, F> Extras<'g, Unhedged, F, NoDeadLetter> {
    pub(crate) fn new(fallback: F, failover: Option<&'g Failover>) -> Self {
        Extras { hedging: Unhedged, fallback, dead_letter: NoDeadLetter, when: None, failover }
    }
}

/// The extras of a call, of the same kinds.
type Same<'g, X> = Extras<
    'g,
    <X as sealed::IntoExtras<'g>>::Hedging,
    <X as sealed::IntoExtras<'g>>::Fallback,
    <X as sealed::IntoExtras<'g>>::DeadLetter,
>;

/// The extras of a call with another fallback behind what it has.
type WithFallback<'g, X, F> = Extras<
    'g,
    <X as sealed::IntoExtras<'g>>::Hedging,
    Then<<X as sealed::IntoExtras<'g>>::Fallback, F>,
    <X as sealed::IntoExtras<'g>>::DeadLetter,
>;

impl<'g, J, X: IntoExtras<'g>> CallBuilder<'g, J, X> {
    /// Starts further attempts beside the first if that takes too long, as the guard's
    /// [`hedge`](super::GuardBuilder::hedge) says. The first good answer wins, the others are dropped.
    ///
    /// Only for a call that may run twice; one that may not is made without hedges.
    pub fn hedged(self) -> CallBuilder<'g, J, Extras<'g, Hedging, X::Fallback, X::DeadLetter>> {
        self.with_extras(|extras| {
            let Extras { fallback, dead_letter, when, failover, .. } = extras.into_extras();
            Extras { hedging: Hedging, fallback, dead_letter, when, failover }
        })
    }

    /// Answers with this value where there is no good answer.
    pub fn or_value<T>(self, value: T) -> CallBuilder<'g, J, WithFallback<'g, X, Value<T>>> {
        self.or(Value(value))
    }

    /// Answers with what `fallback` makes of the error where there is no good answer.
    pub fn or_else<T, E, F>(self, fallback: F) -> CallBuilder<'g, J, WithFallback<'g, X, Function<F>>>
    where
        F: FnOnce(&Error<E>) -> T,
    {
        self.or(Function(fallback))
    }

    /// Asks a function that may have nothing either, where there is no good answer. If it fails, the error is the call's own.
    pub fn or_try<T, E, E2, F>(self, fallback: F) -> CallBuilder<'g, J, WithFallback<'g, X, OtherValue<F>>>
    where
        F: FnOnce(&Error<E>) -> Result<T, E2>,
    {
        self.or(OtherValue(fallback))
    }

    /// Asks another operation, as a rule through another guard, where there is no good answer. If that fails too, the error is
    /// the call's own. For `call` only: `run` has [`or_try`](CallBuilder::or_try).
    pub fn or_ask<T, E, E2, F, Fut>(
        self,
        fallback: F,
    ) -> CallBuilder<'g, J, WithFallback<'g, X, OtherOperation<F>>>
    where
        F: FnOnce(&Error<E>) -> Fut,
        Fut: Future<Output = Result<T, E2>>,
    {
        self.or(OtherOperation(fallback))
    }

    /// Remembers good answers, and answers with the last one where there is none: `&LastGood`, or an
    /// [entry](crate::fallback::LastGoodMap::entry) of a `LastGoodMap`.
    pub fn or_last_good<L: GoodAnswers>(
        self,
        last: L,
    ) -> CallBuilder<'g, J, WithFallback<'g, X, LastGoodValue<L>>> {
        self.or(LastGoodValue(last))
    }

    /// As [`or_ask`](CallBuilder::or_ask), for an operation that holds the error while it runs.
    #[cfg(feature = "macros")]
    #[doc(hidden)]
    pub fn or_ask_lent<T, E, E2, F, Fut>(
        self,
        fallback: F,
    ) -> CallBuilder<'g, J, WithFallback<'g, X, crate::fallback::LentOperation<F>>>
    where
        F: FnOnce(crate::fallback::LentError<E>) -> Fut,
        Fut: Future<Output = Result<T, E2>>,
    {
        self.or(crate::fallback::LentOperation(fallback))
    }

    fn or<F>(self, fallback: F) -> CallBuilder<'g, J, WithFallback<'g, X, F>> {
        self.with_extras(|extras| {
            let Extras { hedging, fallback: first, dead_letter, when, failover } = extras.into_extras();
            Extras { hedging, fallback: Then(first, fallback), dead_letter, when, failover }
        })
    }

    /// Which failures the fallbacks of this call stand in for, instead of those that the guard names.
    pub fn when(self, filter: FallbackFilter) -> CallBuilder<'g, J, Same<'g, X>> {
        self.with_extras(|extras| Extras { when: Some(filter), ..extras.into_extras() })
    }

    /// What was given up (attempts spent, budget denied, out of time) is shown to `sink`, before a fallback answers, so
    /// that it can be kept and tried again later.
    pub fn dead_letter<E, D: FnOnce(&Error<E>)>(
        self,
        sink: D,
    ) -> CallBuilder<'g, J, Extras<'g, X::Hedging, X::Fallback, D>> {
        self.with_extras(|extras| {
            let Extras { hedging, fallback, when, failover, .. } = extras.into_extras();
            Extras { hedging, fallback, dead_letter: sink, when, failover }
        })
    }
}

impl<H, F, D> fmt::Debug for Extras<'_, H, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extras")
            .field("when", &self.when)
            .field("failover", &self.failover)
            .finish_non_exhaustive()
    }
}
