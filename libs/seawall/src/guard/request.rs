//! What is said about a call before it is made.

use super::attempt::Identity;
use super::tell::Teller;
use super::{Attempt, Call, Deadline, Inner, Key, Operation};
use crate::clock::Tick;
use crate::error::Error;
use crate::event::Labels;
use crate::fallback::{AtHand, Elsewhere, LastGood, OrLastGood, WithFallback};
use crate::fault::{Causes, Classify};
use crate::hedge::Hedged;
use crate::retry::Safety;

/// A call in the making: what the guard must know about this operation that it does not know by itself.
#[must_use = "nothing happens until `call`"]
#[derive(Clone, Copy)]
pub struct Request<'g, C = Causes> {
    pub(super) guard: &'g Inner,
    pub(super) terms: Terms<'g>,
    pub(super) classify: C,
}

/// What was said about the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'g> {
    pub(super) safety: Safety,
    pub(super) identity: Option<Identity>,
    pub(super) deadline: Tick,
    /// One attempt and no more, whatever the guard's retries say.
    pub(super) single: bool,
    /// What a caller in another process or task has said about its own retries.
    pub(super) retries_above: Option<u32>,
    pub(super) role: Role,
    pub(super) labels: Labels<'g>,
}

/// What a call is to a call with a second attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Nothing.
    Alone,
    /// Its first part. How it ended is told when the second can't answer in its place any more.
    First,
    /// The second attempt beside it: part of that call, and no call of its own.
    Beside,
}

impl<'g> Request<'g> {
    #[inline]
    pub(super) fn new(guard: &'g Inner) -> Self {
        Request {
            guard,
            terms: Terms {
                safety: Safety::Once,
                identity: None,
                deadline: Tick::NEVER,
                single: false,
                retries_above: None,
                role: Role::Alone,
                labels: Labels::default(),
            },
            classify: Causes,
        }
    }
}

impl<'g, C> Request<'g, C> {
    /// How safe it is to run the operation again: `once` unless something else is said.
    pub fn safety(mut self, safety: Safety) -> Self {
        self.terms.safety = safety;
        self
    }

    /// Running the operation twice is the same as running it once.
    pub fn idempotent(self) -> Self {
        self.safety(Safety::Idempotent)
    }

    /// The peer honours [`Attempt::key`](super::Attempt::key).
    pub fn keyed(self) -> Self {
        self.safety(Safety::Keyed)
    }

    /// The peer honours this key.
    pub fn key(mut self, key: Key) -> Self {
        self.terms.identity = Some(Identity::Given(key));
        self.keyed()
    }

    /// Bounds the call by a deadline that came from elsewhere. The guard's own timeouts hold as well.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.terms.deadline = deadline.0;
        self
    }

    /// The caller of this process or task retries, and has done so this many times: what it sent along as its
    /// [`depth`](super::Attempt::depth). The depth goes on from there, and a guard that was told to
    /// [`leave_to_outer`](crate::Retry::leave_to_outer) leaves it to that caller.
    pub fn retries_above(mut self, depth: u32) -> Self {
        self.terms.retries_above = Some(depth);
        self
    }

    /// One attempt and no more: everything in the guard but its retries and their budget. For those who have a schedule of
    /// their own, like a queue of deliveries.
    pub fn single_attempt(mut self) -> Self {
        self.terms.single = true;
        self
    }

    /// What the operation is called in logs and events, like `charge`.
    pub fn operation(mut self, operation: &'g str) -> Self {
        self.terms.labels.operation = operation;
        self
    }

    /// What the call is about, for logs and events: the order's number, the customer. Metrics do not carry it.
    pub fn about(mut self, business_key: &'g str) -> Self {
        self.terms.labels.about = business_key;
        self
    }

    /// Starts a second attempt beside the first if that takes too long, as the guard's [`hedge`](super::GuardBuilder::hedge)
    /// says.
    pub fn hedged(self) -> Hedged<'g, C> {
        Hedged::new(self)
    }

    pub(crate) fn inner(&self) -> &'g Inner {
        self.guard
    }

    /// The call that a second attempt may answer for.
    pub(crate) fn first(mut self) -> Self {
        self.terms.role = Role::First;
        self
    }

    /// The second attempt beside the call that this request makes, which is over by `deadline`.
    pub(crate) fn beside(mut self, deadline: Tick) -> Self {
        self.terms.role = Role::Beside;
        self.terms.deadline = self.terms.deadline.min(deadline);
        self.single_attempt()
    }

    /// Tells of this call what happens outside of it.
    pub(crate) fn teller(&self) -> Teller<'g> {
        Teller::new(self.guard, self.terms.labels)
    }

    pub(crate) fn may_run_twice(&self) -> bool {
        self.terms.safety != Safety::Once
    }

    /// The same, with an identity that all its calls share.
    pub(crate) fn with_identity(mut self) -> Self {
        self.terms.identity.get_or_insert_with(Identity::new);
        self
    }

    /// Answers with what `fallback` makes of the error, where there is no answer.
    pub fn or_else<T, E, F>(self, fallback: F) -> WithFallback<'g, C, impl FnOnce(&Error<E>) -> AtHand<T>>
    where
        F: FnOnce(&Error<E>) -> T,
    {
        WithFallback::new(self, move |error: &Error<E>| AtHand(Some(fallback(error))))
    }

    /// Answers with this value, where there is no answer.
    pub fn or_value<T, E>(self, value: T) -> WithFallback<'g, C, impl FnOnce(&Error<E>) -> AtHand<T>> {
        WithFallback::new(self, move |_: &Error<E>| AtHand(Some(value)))
    }

    /// Asks somebody else, where there is no answer: another operation, as a rule through another guard. If that fails
    /// too, the error is the first one.
    pub fn or_ask<T, E, E2, F, Fut>(
        self,
        fallback: F,
    ) -> WithFallback<'g, C, impl FnOnce(&Error<E>) -> Elsewhere<Fut>>
    where
        F: FnOnce(&Error<E>) -> Fut,
        Fut: Future<Output = Result<T, E2>>,
    {
        WithFallback::new(self, move |error: &Error<E>| Elsewhere(fallback(error)))
    }

    /// Remembers good answers, and answers with the last one where there is none.
    pub fn or_last_good<'l, T>(self, last: &'l LastGood<T>) -> OrLastGood<'g, 'l, C, T> {
        OrLastGood { request: self, last }
    }

    /// Judges results by `classify`.
    pub fn classify<C2>(self, classify: C2) -> Request<'g, C2> {
        Request { guard: self.guard, terms: self.terms, classify }
    }

    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation is called once for each attempt.
    #[inline]
    pub fn call<F, Fut, T, E>(self, operation: F) -> Call<'g, F, C>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Classify<T, E>,
    {
        Call::new(self, operation)
    }

    /// As [`call`](Request::call), for an [`Operation`] that is no closure.
    #[inline]
    pub fn perform<O>(self, operation: O) -> Call<'g, O, C>
    where
        O: Operation,
        C: Classify<O::Output, O::Error>,
    {
        Call::new(self, operation)
    }
}

impl<C> std::fmt::Debug for Request<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("guard", &self.guard.watch.name)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}
