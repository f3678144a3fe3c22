//! What is said about a call before it is made.

use std::time::Duration;

use super::attempt::Identity;
use super::tell::Teller;
use super::{Deadline, Inner, Key, Plain};
use crate::clock::Tick;
use crate::event::Labels;
use crate::failover::Side;
use crate::fault::{Causes, Classifier};
use crate::retry::Safety;

/// A call in the making: what the guard must know about this operation that it does not know by itself.
///
/// Everything about a call is said here, in any order and any combination: how safe it is to repeat, who judges its results,
/// [hedges](CallBuilder::hedged), fallbacks ([`or_value`](CallBuilder::or_value), [`or_else`](CallBuilder::or_else),
/// [`or_try`](CallBuilder::or_try), [`or_ask`](CallBuilder::or_ask), [`or_last_good`](CallBuilder::or_last_good)), a place for
/// [dead letters](CallBuilder::dead_letter). Then [`call`](CallBuilder::call) makes it, or `call_on` for an operation that
/// works on something of the caller's, or `run` for one that blocks.
///
/// `J` judges the results, and `X` is what the call brings along beside the guard's policies; both are inferred.
#[must_use = "nothing happens until `call` or `run`"]
#[derive(Clone, Copy)]
pub struct CallBuilder<'g, J = Causes, X = Plain> {
    pub(super) guard: &'g Inner,
    pub(super) terms: Terms<'g>,
    pub(super) judge: J,
    pub(super) extras: X,
}

/// What was said about the operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'g> {
    pub(crate) safety: Safety,
    pub(super) identity: Option<Identity>,
    /// On the clock of the guard.
    pub(crate) deadline: Tick,
    /// Instead of the guard's own.
    pub(super) attempt_timeout: Option<Duration>,
    /// One attempt and no more, whatever the guard's retries say.
    pub(crate) single: bool,
    /// What a caller in another process or task has said about its own retries.
    pub(super) retries_above: Option<u32>,
    pub(super) role: Role,
    /// Which side of a failover the call asks.
    pub(crate) side: Side,
    /// Which hedge this is; zero for the call itself.
    pub(super) hedge: u32,
    pub(super) labels: Labels<'g>,
}

/// What a call is to a call with hedges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Nothing.
    Alone,
    /// The call itself. How it ended is told when no hedge can answer in its place any more.
    First,
    /// A hedge beside it: part of that call, and no call of its own.
    Beside,
}

impl<'g> Terms<'g> {
    #[inline]
    pub(super) fn new() -> Self {
        Terms {
            safety: Safety::Once,
            identity: None,
            deadline: Tick::NEVER,
            attempt_timeout: None,
            single: false,
            retries_above: None,
            role: Role::Alone,
            side: Side::PRIMARY,
            hedge: 0,
            labels: Labels::default(),
        }
    }

    /// The call that a hedge may answer for, and what all its hedges have in common with it: one identity, one deadline.
    #[cfg(feature = "tokio")]
    pub(crate) fn hedged(mut self, deadline: Tick) -> (Self, Self) {
        self.identity.get_or_insert_with(Identity::new);
        let first = Terms { role: Role::First, ..self };
        let beside =
            Terms { role: Role::Beside, deadline: self.deadline.min(deadline), single: true, ..self };
        (first, beside)
    }

    /// Of the hedge of this number.
    #[cfg(feature = "tokio")]
    pub(crate) fn numbered(self, hedge: u32) -> Self {
        Terms { hedge, ..self }
    }

    /// As the guard of another side is told, which may go by another clock.
    pub(crate) fn on_side(self, side: Side, from: &Inner, to: &Inner) -> Self {
        Terms { side, deadline: from.clock.id().translate(self.deadline, &to.clock), ..self }
    }

    pub(crate) fn may_run_twice(&self) -> bool {
        self.safety != Safety::Once
    }

    /// Tells of this call what happens outside of it.
    pub(crate) fn teller(&self, guard: &'g Inner) -> Teller<'g> {
        Teller::new(guard, self.labels)
    }
}

impl<'g> CallBuilder<'g> {
    #[inline]
    pub(super) fn new(guard: &'g Inner) -> Self {
        CallBuilder { guard, terms: Terms::new(), judge: Causes, extras: Plain }
    }
}

impl<'g, X> CallBuilder<'g, Causes, X> {
    pub(crate) fn over(guard: &'g Inner, extras: X) -> Self {
        CallBuilder { guard, terms: Terms::new(), judge: Causes, extras }
    }
}

impl<'g, J, X> CallBuilder<'g, J, X> {
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

    /// Bounds the call by a deadline that came from elsewhere. The guard's own timeouts hold as well. Of several deadlines
    /// the earliest holds.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.terms.deadline = self.terms.deadline.min(deadline.on(&self.guard.clock));
        self
    }

    /// How long each attempt of this call may take, instead of what the guard says. The call timeout holds as well.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.terms.attempt_timeout = Some(timeout);
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

    /// Judges results by `classify`.
    pub fn classify<C>(self, classify: C) -> CallBuilder<'g, Classifier<C>, X> {
        self.judged_by(Classifier(classify))
    }

    pub(super) fn judged_by<J2>(self, judge: J2) -> CallBuilder<'g, J2, X> {
        CallBuilder { guard: self.guard, terms: self.terms, judge, extras: self.extras }
    }

    /// The same call with other extras.
    pub(super) fn with_extras<X2>(self, change: impl FnOnce(X) -> X2) -> CallBuilder<'g, J, X2> {
        CallBuilder { guard: self.guard, terms: self.terms, judge: self.judge, extras: change(self.extras) }
    }
}

impl<J, X> std::fmt::Debug for CallBuilder<'_, J, X> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallBuilder")
            .field("guard", &self.guard.watch.name)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}
