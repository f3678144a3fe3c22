//! What a call does next: everything about it that does not depend on the operation's types.

use std::time::Duration;

use super::admission::{Queued, is_rejection};
use super::ambient::{Context, tell_spent};
use super::attempt::{Attempt, Identity};
use super::call_builder::Terms;
use super::{Deadline, Inner, Settings};
use crate::breaker::{Outcome, Scope, Slot};
use crate::budget::{RetryBudget, Token};
use crate::bulkhead::Permit;
use crate::clock::Tick;
use crate::error::{Kind, Policy, Report};
use crate::event::EventKind;
use crate::fault::{Class, Fault, Ran};
use crate::retry::{self, GiveUp, Safety, Situation};
use crate::telemetry::{AttemptOutcome, AttemptSpan};
use crate::timeout::{Expired, expired};

/// The state of a call between polls.
pub(super) struct Run<'g> {
    pub(super) guard: &'g Inner,
    /// Read once, at the first poll, so that a change of settings never meets a call halfway.
    settings: Option<&'g Settings>,
    pub(super) terms: Terms<'g>,
    /// What stands around the operation while it is polled.
    pub(super) within: Context,
    /// What stands around the call itself.
    pub(super) around: Context,
    /// The last reading of the clock.
    pub(super) now: Tick,
    pub(super) call_deadline: Tick,
    attempt_deadline: Tick,
    pub(super) deadline: Tick,
    /// When the attempt started.
    pub(super) launched_at: Tick,
    /// When the wait under way ends.
    pub(super) resume_at: Tick,
    /// In nanoseconds: a `Duration` in here would be moved in pieces.
    wait_nanos: u64,
    /// Attempts that were started.
    pub(super) attempts: u32,
    /// Attempts that were tried, refused ones included.
    pub(super) tries: u32,
    /// Whether the attempt has returned `Pending`.
    has_suspended: bool,
    /// When the call began, if it is watched and not over; else never.
    pub(super) began: Tick,
    pub(super) ran: Ran,
    /// The span of the attempt under way.
    pub(super) span: AttemptSpan,
    pub(super) ticket: Slot<'g>,
    /// The place in the bulkhead.
    pub(super) permit: Option<Permit<'g>>,
    /// What the attempt waits for.
    pub(super) queued: Option<Box<Queued<'g>>>,
    /// The price of the retry that is waiting to start. Behind a pointer, because most calls have none.
    pub(super) token: Option<Box<Token<'g>>>,
    /// Of the last attempt that failed, and at the end of the call.
    pub(super) report: Option<Report>,
}

/// What a call does next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The attempt is there to be started.
    Start,
    /// The attempt has to wait for its turn or its place.
    Queue,
    /// Chaos holds the attempt up until `resume_at`.
    Hold,
    /// Try again at once.
    Again,
    /// Try again after the back-off.
    Wait,
    /// The report is ready.
    GiveUp,
}

impl<'g> Run<'g> {
    #[inline]
    pub(super) fn new(guard: &'g Inner, terms: Terms<'g>) -> Self {
        Run {
            guard,
            settings: None,
            terms,
            within: Context::OUTSIDE,
            around: Context::OUTSIDE,
            now: Tick::NEVER,
            call_deadline: Tick::NEVER,
            attempt_deadline: Tick::NEVER,
            deadline: Tick::NEVER,
            launched_at: Tick::NEVER,
            resume_at: Tick::NEVER,
            wait_nanos: 0,
            attempts: 0,
            tries: 0,
            has_suspended: false,
            began: Tick::NEVER,
            ran: Ran::No,
            span: AttemptSpan::NONE,
            ticket: Slot::EMPTY,
            permit: None,
            queued: None,
            token: None,
            report: None,
        }
    }

    /// Makes everything ready for the next attempt, or says what to do instead.
    #[inline(always)]
    pub(super) fn start_attempt(&mut self) -> Next {
        let settings = match self.settings {
            Some(settings) => settings,
            None => self.begin(),
        };
        if self.call_deadline != Tick::NEVER && self.now >= self.call_deadline {
            return self.too_late();
        }
        if let (Some(breaker), true) = (&settings.breaker, self.ticket.is_empty()) {
            match breaker.admit_untimed() {
                Ok(ticket) => self.ticket.put(ticket),
                Err(refused) => return self.refused(refused),
            }
        }
        if settings.limited { self.ask_limits() } else { self.launch() }
    }

    /// Everything is there: the attempt starts now.
    #[inline(always)]
    pub(super) fn launch(&mut self) -> Next {
        let settings = self.settings();
        // A ticket's time starts with the operation, not in a line; that of a whole call with its first attempt.
        if self.ticket.is_timed() {
            self.ticket.start_if_not();
        }
        if let Some(token) = self.token.take() {
            token.spend();
        }
        if let (0, Some(budget)) = (self.attempts, self.budget()) {
            budget.first_attempt_at(self.now);
        }
        self.tries += 1;
        self.attempts += 1;
        self.has_suspended = false;
        self.launched_at = self.now;
        if let Some(timeout) = self.terms.attempt_timeout.or(settings.timeouts.attempt) {
            self.attempt_deadline = self.now + timeout;
        }
        self.deadline = self.call_deadline.min(self.attempt_deadline);
        self.within = self.around.inner(self.attempts - 1, self.may_retry(), self.guard.clock.id());
        if self.is_watched() {
            self.tell(EventKind::Attempt { number: self.attempts });
        }
        self.span = self.guard.watch.attempt_span(self.terms.labels, self.attempts);
        if settings.chaos.is_some() { self.make_trouble() } else { Next::Start }
    }

    /// What the operation is told about the attempt.
    #[inline(always)]
    pub(super) fn attempt(&mut self) -> Attempt {
        Attempt {
            number: self.attempts,
            retries_above: self.around.retries(),
            identity: *self.terms.identity.get_or_insert_with(Identity::new),
            deadline: Deadline { at: self.deadline, clock: self.guard.clock.id() },
            started: self.now,
            side: self.terms.side,
            hedge: self.terms.hedge,
        }
    }

    /// The first poll: settings, time, deadlines.
    #[inline(always)]
    fn begin(&mut self) -> &'g Settings {
        let settings = self.guard.settings.newest();
        self.settings = Some(settings);
        let (inherited, around) = Context::current();
        self.around = match self.terms.retries_above {
            Some(depth) => around.below(depth),
            None => around,
        };
        self.call_deadline = self.terms.deadline;
        if inherited != Tick::NEVER {
            self.inherit(inherited, around);
        }
        if self.guard.watch.is_on() {
            self.begin_watched();
        } else if settings.timed || self.call_deadline != Tick::NEVER || self.terms.attempt_timeout.is_some()
        {
            self.now = self.read_clock(settings);
        }
        if let Some(timeout) = settings.timeouts.call {
            self.call_deadline = self.call_deadline.min(self.now + timeout);
        }
        settings
    }

    /// The deadline of the guard around holds here too, whatever clock that guard goes by.
    #[cold]
    fn inherit(&mut self, inherited: Tick, around: Context) {
        let inherited = around.clock().translate(inherited, &self.guard.clock);
        self.call_deadline = self.call_deadline.min(inherited);
    }

    /// The attempt is under way. Returns when to look again.
    #[inline]
    pub(super) fn suspended(&mut self) -> Tick {
        if !self.has_suspended {
            self.has_suspended = true;
            if !self.ticket.is_empty() {
                let started = if self.now == Tick::NEVER { self.guard.clock.now() } else { self.now };
                self.ticket.started_by(started);
            }
        }
        self.deadline
    }

    /// The call has its answer.
    #[inline(always)]
    pub(super) fn succeeded(&mut self) {
        self.settle_success();
        if self.is_watched() {
            self.tell_success();
        }
    }

    #[inline(always)]
    fn settle_success(&mut self) {
        self.span.end(AttemptOutcome::Success);
        // If it was ready at once, the time at which it started is the time now.
        let known = !self.has_suspended && !self.ticket.is_timed() && self.now != Tick::NEVER;
        self.ticket.settle(Outcome::Success, known.then_some(self.now));
        self.leave_gate(None);
        if let Some(budget) = self.budget() {
            budget.succeeded(self.attempts == 1);
        }
        if self.around.is_spent() {
            tell_spent(false);
        }
    }

    /// The attempt ended by itself and was judged. `from_guard`: whether it passed on the error of a guard further in.
    #[cold]
    pub(super) fn answered(&mut self, fault: Option<Fault>, from_guard: bool) -> Next {
        let may_be_ours = |fault: Fault| fault.class() == Class::Timeout && fault.is_transient();
        let out_of_time = from_guard || fault.is_some_and(may_be_ours);
        if out_of_time && self.deadline != Tick::NEVER && self.guard.clock.precise() >= self.deadline {
            // A guard further in has come to the deadline that it has from here, a moment before our own timer.
            return self.expired(self.deadline);
        }
        let Some(fault) = fault else {
            // The classifier takes this error for no fault of the peer: it is passed on, and that is all.
            self.settle_success();
            self.ran = self.ran.max(Ran::Yes);
            return self.give_up(Kind::Failed, Policy::Operation, Fault::business());
        };
        // Precisely, because a wait may begin here, and a back-off of 5 ms should not be one of 1 ms.
        self.now = self.guard.clock.precise();
        self.failed(fault, Policy::Operation)
    }

    /// A deadline of the attempt has passed.
    #[cold]
    pub(super) fn expired(&mut self, at: Tick) -> Next {
        // The coarse clock may be behind the timer.
        self.now = self.read_clock(self.settings()).max(at);
        match expired(self.call_deadline, self.attempt_deadline, at) {
            Some(Expired::Attempt) => self.failed(Fault::timeout(), Policy::AttemptTimeout),
            _ => {
                self.span.end(AttemptOutcome::TimedOut);
                self.ran = Ran::Unknown;
                if self.is_watched() {
                    self.tell_failed(Fault::timeout(), Policy::CallTimeout);
                }
                self.leave_gate(Some(Fault::timeout()));
                if let Some(ticket) = self.ticket.take() {
                    ticket.cut_short();
                }
                self.past_deadline(Fault::timeout())
            }
        }
    }

    /// The back-off is over.
    #[cold]
    pub(super) fn resumed(&mut self) {
        self.now = self.read_clock(self.settings()).max(self.resume_at);
    }

    pub(super) fn failed(&mut self, fault: Fault, from: Policy) -> Next {
        self.span.end(AttemptOutcome::of(fault, from));
        self.ran = self.ran.max(fault.ran);
        self.report = Some(self.report_of(Kind::Failed, from, fault));
        if self.is_watched() {
            self.tell_failed(fault, from);
        }
        self.leave_gate(Some(fault));
        if self.settings().scope == Scope::Attempt {
            if let Some(ticket) = self.ticket.take() {
                ticket.finish_at(self.outcome_of(fault), self.now);
            }
        } else {
            // The time of a whole call runs from its first attempt, also if that failed before it ever had to wait: else
            // a call that is given up in its back-off, or in its second attempt, would seem to have just begun.
            self.ticket.started_by(self.launched_at.min(self.now));
        }
        if let Some(budget) = self.budget()
            && fault.is_transient()
        {
            budget.failed();
        }
        self.next(fault, from)
    }

    /// The decision: another attempt, now or later, or the end and why.
    pub(super) fn next(&mut self, fault: Fault, from: Policy) -> Next {
        let Some(settings) = self.retry() else { return self.give_up_at(from, fault) };
        let situation = Situation {
            fault,
            tries: self.tries,
            safety: self.terms.safety,
            outer_retries: self.around.is_retried(),
        };
        match retry::decide(situation, settings) {
            Ok(()) => {}
            Err(GiveUp::Exhausted) if !is_rejection(from) => {
                return self.give_up(Kind::Exhausted, Policy::Retry, fault);
            }
            Err(GiveUp::Unsafe) if from == Policy::Operation => {
                return self.give_up(Kind::Failed, Policy::Retry, fault);
            }
            Err(_) => return self.give_up_at(from, fault),
        }
        if self.now == Tick::NEVER {
            self.now = self.read_clock(self.settings());
        }
        let retries = self.tries - 1;
        let previous = Duration::from_nanos(self.wait_nanos);
        let wait = retry::wait(fault, retries, previous, self.guard.chance.next(), settings);
        self.wait_nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.resume_at = self.now + wait;
        if self.resume_at >= self.call_deadline {
            // Sleeping into the deadline helps nobody: say now what will be true then.
            if is_rejection(from) {
                return self.give_up_at(from, fault);
            }
            self.settle_call(self.outcome_of(fault));
            return self.end(Kind::TimedOut, Policy::CallTimeout, fault);
        }
        // An attempt that was refused has cost nothing yet, and still holds its token if it was a retry.
        if let (Some(budget), true, None) = (self.budget(), self.attempts > 0, &self.token) {
            self.token = budget.try_spend_at(self.now).map(Box::new);
            if self.token.is_none() {
                if self.is_watched() {
                    self.tell(EventKind::BudgetDenied { fault });
                }
                return self.give_up(Kind::BudgetDenied, Policy::Budget, fault);
            }
        }
        self.tell_rare(EventKind::Retry { number: self.attempts + 1, after: wait, fault });
        if wait.is_zero() { Next::Again } else { Next::Wait }
    }

    /// How this call is retried, if it is.
    #[inline]
    pub(super) fn retry(&self) -> Option<&'g retry::Settings> {
        if self.terms.single { None } else { self.settings().retry.as_ref() }
    }

    /// Whether a guard further in can leave retrying to this one.
    fn may_retry(&self) -> bool {
        self.terms.safety != Safety::Once && self.retry().is_some()
    }

    #[inline]
    fn budget(&self) -> Option<&'g RetryBudget> {
        if self.terms.single { None } else { self.settings().budget.as_deref() }
    }

    /// Whether somebody wants to know what happens, and the call is not over.
    #[inline(always)]
    pub(super) fn is_watched(&self) -> bool {
        self.began != Tick::NEVER
    }

    pub(super) fn settings(&self) -> &'g Settings {
        self.settings.expect("settings are read at the first poll")
    }

    #[inline]
    pub(super) fn read_clock(&self, settings: &Settings) -> Tick {
        if settings.precise || self.is_watched() || self.terms.attempt_timeout.is_some() {
            self.guard.clock.precise()
        } else {
            self.guard.clock.now()
        }
    }
}
