//! What a call tells those who listen to its guard. All of it out of line: most guards have nobody to tell.

use super::Inner;
use super::call_builder::Role;
use super::decide::Run;
use crate::clock::Tick;
use crate::error::{Kind, Policy, Report};
use crate::event::{EventKind, Labels};
use crate::fault::Fault;

/// Tells of a call what happens outside of it: a second attempt, a fallback.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'g> {
    guard: &'g Inner,
    labels: Labels<'g>,
}

impl<'g> Teller<'g> {
    pub(super) fn new(guard: &'g Inner, labels: Labels<'g>) -> Self {
        Teller { guard, labels }
    }

    pub(crate) fn tell(&self, what: EventKind) {
        if self.guard.watch.is_on() {
            self.guard.watch.tell(self.labels, what);
        }
    }

    /// A call that nobody watches was rejected. That is written down whether anybody listens or not, so that a person can ask
    /// afterwards, and told to hooks.
    pub(super) fn remember_rejection(&self, now: Tick, fault: Fault, by: Policy) {
        let now = if now == Tick::NEVER { self.guard.clock.now() } else { now };
        self.guard.rejections.remember(now, by, fault.retry_after());
        if self.guard.watch.has_rare_hooks() {
            let what = EventKind::Rejected { by, retry_after: fault.retry_after() };
            self.guard.watch.tell_hooks(self.labels, what);
        }
    }
}

impl Run<'_> {
    /// Begins a call of which somebody wants to know.
    #[cold]
    pub(super) fn begin_watched(&mut self) {
        self.began = self.now;
        if self.terms.role != Role::Beside {
            self.tell(EventKind::Started);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn tell(&self, what: EventKind) {
        self.guard.watch.tell(self.terms.labels, what);
    }

    /// Retries and rejections are told to hooks also where nobody watches the call.
    #[inline]
    pub(super) fn tell_rare(&self, what: EventKind) {
        if self.is_watched() {
            self.tell(what);
        } else if self.guard.watch.has_rare_hooks() {
            self.guard.watch.tell_hooks(self.terms.labels, what);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn tell_success(&mut self) {
        self.tell_end(EventKind::Succeeded { attempts: self.attempts, took: self.took() });
    }

    /// A hedge beside this call has answered, after so many hedges.
    #[cfg(feature = "tokio")]
    pub(super) fn answered_by_hedge(&mut self, hedges: u32) {
        if self.is_watched() {
            self.tell(EventKind::HedgeWon);
            self.tell_end(EventKind::Succeeded { attempts: self.attempts + hedges, took: self.took() });
        }
    }

    pub(super) fn tell_failed(&self, fault: Fault, by: Policy) {
        if by == Policy::AttemptTimeout {
            self.tell(EventKind::TimedOut { by });
        }
        let took = self.now.since(self.launched_at);
        self.tell(EventKind::Failed { number: self.attempts, fault, took });
    }

    /// No hedge has answered in its place: it ended as it did, over all of them as `report` says.
    #[cfg(feature = "tokio")]
    pub(super) fn not_answered_by_hedge(&mut self, report: &Report) {
        if self.is_watched() {
            self.tell_given_up(report);
        }
    }

    #[cold]
    pub(super) fn tell_given_up(&mut self, report: &Report) {
        let Report { kind, decided_by: by, attempts, fault, .. } = *report;
        // A second attempt has the deadline of its call, which tells of it once.
        if kind == Kind::TimedOut && by == Policy::CallTimeout && self.terms.role != Role::Beside {
            self.tell(EventKind::TimedOut { by });
        }
        self.tell_end(EventKind::GivenUp { kind, by, attempts, fault, took: self.took() });
    }

    #[cold]
    pub(super) fn tell_dropped(&mut self) {
        let panicked = self.ticket.has_panicked();
        if panicked {
            self.tell(EventKind::Panicked);
        }
        self.tell_end(EventKind::Abandoned { took: self.took(), panicked });
    }

    /// Written down whether anybody listens or not, so that a person can ask afterwards.
    pub(super) fn remember_rejection(&self, fault: Fault, by: Policy) {
        if !self.is_watched() {
            return self.terms.teller(self.guard).remember_rejection(self.now, fault, by);
        }
        self.guard.rejections.remember(self.now, by, fault.retry_after());
        self.tell(EventKind::Rejected { by, retry_after: fault.retry_after() });
    }

    /// After this nothing more is told of the call.
    fn tell_end(&mut self, what: EventKind) {
        self.began = Tick::NEVER;
        if self.terms.role != Role::Beside {
            self.tell(what);
        }
    }

    fn took(&self) -> std::time::Duration {
        self.guard.clock.precise().since(self.began)
    }
}

/// Whoever drops a call halfway has given it up.
impl Drop for Run<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_watched() {
            self.tell_dropped();
        }
    }
}
