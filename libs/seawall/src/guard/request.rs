//! What is said about a call before it is made.

use super::attempt::Identity;
use super::{Attempt, Call, Deadline, Inner, Key, Operation};
use crate::clock::Tick;
use crate::fault::{Causes, Classify};
use crate::retry::Safety;

/// A call in the making: what the guard must know about this operation that it does not know by itself.
#[must_use = "nothing happens until `call`"]
#[derive(Clone, Copy)]
pub struct Request<'g, C = Causes> {
    pub(super) guard: &'g Inner,
    pub(super) terms: Terms,
    pub(super) classify: C,
}

/// What was said about the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) safety: Safety,
    pub(super) identity: Option<Identity>,
    pub(super) deadline: Tick,
    /// One attempt and no more, whatever the guard's retries say.
    pub(super) single: bool,
}

impl<'g> Request<'g> {
    #[inline]
    pub(super) fn new(guard: &'g Inner) -> Self {
        Request {
            guard,
            terms: Terms { safety: Safety::Once, identity: None, deadline: Tick::NEVER, single: false },
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

    /// One attempt and no more: everything in the guard but its retries and their budget. For those who have a schedule of
    /// their own, like a queue of deliveries.
    pub fn single_attempt(mut self) -> Self {
        self.terms.single = true;
        self
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
