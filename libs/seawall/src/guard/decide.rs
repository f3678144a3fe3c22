//! What a call does next: everything about it that does not depend on the operation's types.

use std::time::Duration;

use super::admission::{ask_limits, is_rejection};
use super::ambient::{Context, tell_spent};
use super::attempt::Attempt;
use super::beginning::{Beginning, attempt, attempt_deadline, budget, may_retry, read_clock};
use super::call_builder::Terms;

use super::rare::Rare;
use super::{Inner, Settings};
use crate::breaker::{Outcome, Scope, Slot};
use crate::budget::RetryBudget;
use crate::bulkhead::Permit;
use crate::clock::Tick;
use crate::error::{Kind, Policy, Report};
use crate::event::EventKind;
use crate::fault::{Class, Fault, Ran};
use crate::retry::{self, GiveUp, Situation};
use crate::telemetry::AttemptOutcome;

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
    pub(super) attempt_deadline: Tick,
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
    /// Whether the process did not run when the attempt's time was over.
    pub(super) overslept: bool,
    /// When the call began, if it is watched and not over; else never.
    pub(super) began: Tick,
    pub(super) ran: Ran,
    pub(super) ticket: Slot<'g>,
    /// The place in the bulkhead.
    pub(super) permit: Option<Permit<'g>>,
    pub(super) rare: Option<Box<Rare<'g>>>,
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
            overslept: false,
            began: Tick::NEVER,
            ran: Ran::No,
            ticket: Slot::EMPTY,
            permit: None,
            rare: None,
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
        if settings.limited { self.admitted(ask_limits(settings)) } else { self.launch() }
    }

    /// Everything is there: the attempt starts now.
    #[inline(always)]
    pub(super) fn launch(&mut self) -> Next {
        let settings = self.settings();
        // A ticket's time starts with the operation, not in a line; that of a whole call with its first attempt.
        if self.ticket.is_timed() {
            self.ticket.start_if_not();
        }
        self.spend_token();
        if let (0, Some(budget)) = (self.attempts, self.budget()) {
            budget.first_attempt_at(self.now);
        }
        self.tries += 1;
        self.attempts += 1;
        self.has_suspended = false;
        self.overslept = false;
        self.launched_at = self.now;
        self.attempt_deadline = attempt_deadline(settings, &self.terms, self.now);
        self.deadline = self.call_deadline.min(self.attempt_deadline);
        self.within =
            self.around.inner(self.attempts - 1, may_retry(settings, &self.terms), self.guard.clock.id());
        if self.is_watched() {
            self.tell(EventKind::Attempt { number: self.attempts });
        }
        self.start_span();
        if settings.chaos.is_some() { self.make_trouble() } else { Next::Start }
    }

    /// What the operation is told about the attempt.
    #[inline(always)]
    pub(super) fn attempt(&mut self) -> Attempt {
        attempt(self.guard, &mut self.terms, self.attempts, self.around, self.deadline, self.now)
    }

    /// The first poll: settings, time, deadlines.
    #[inline(always)]
    fn begin(&mut self) -> &'g Settings {
        let watched = self.guard.watch.is_on();
        self.begun(Beginning::read(self.guard, &self.terms, watched));
        if watched {
            self.begin_watched();
        }
        self.settings()
    }

    #[inline(always)]
    pub(super) fn begun(&mut self, begin: Beginning<'g>) {
        let Beginning { settings, around, now, call_deadline } = begin;
        self.settings = Some(settings);
        (self.around, self.now, self.call_deadline) = (around, now, call_deadline);
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
        self.end_span(AttemptOutcome::Success);
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

    /// The back-off is over.
    #[cold]
    pub(super) fn resumed(&mut self) {
        self.now = self.read_clock(self.settings()).max(self.resume_at);
    }

    pub(super) fn failed(&mut self, fault: Fault, from: Policy) -> Next {
        self.end_span(AttemptOutcome::of(fault, from));
        self.ran = self.ran.max(fault.ran);
        self.look_for_pause(fault);
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
        if let (Some(budget), true, false) = (self.budget(), self.attempts > 0, self.has_token()) {
            let Some(token) = budget.try_spend_at(self.now) else {
                if self.is_watched() {
                    self.tell(EventKind::BudgetDenied { fault });
                }
                return self.give_up(Kind::BudgetDenied, Policy::Budget, fault);
            };
            self.rare_mut().token = Some(token);
        }
        self.tell_rare(EventKind::Retry { number: self.attempts + 1, after: wait, fault });
        if wait.is_zero() { Next::Again } else { Next::Wait }
    }

    /// How this call is retried, if it is.
    #[inline]
    pub(super) fn retry(&self) -> Option<&'g retry::Settings> {
        if self.terms.single { None } else { self.settings().retry.as_ref() }
    }

    #[inline]
    fn budget(&self) -> Option<&'g RetryBudget> {
        budget(self.settings(), &self.terms)
    }

    /// Whether somebody wants to know what happens, and the call is not over.
    #[inline(always)]
    pub(super) fn is_watched(&self) -> bool {
        self.began != Tick::NEVER
    }

    #[inline(always)]
    pub(super) fn settings(&self) -> &'g Settings {
        self.settings.expect("settings are read at the first poll")
    }

    #[inline]
    pub(super) fn read_clock(&self, settings: &Settings) -> Tick {
        read_clock(self.guard, settings, &self.terms, self.is_watched())
    }
}
