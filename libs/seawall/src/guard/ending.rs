//! How a call ends without a value, and what is said about it.

use super::admission::is_rejection;
use super::ambient::tell_spent;
use super::call_builder::Role;
use super::decide::{Next, Run};
use crate::breaker::Outcome;
use crate::clock::Tick;
use crate::error::{Kind, Policy, Report};
use crate::fault::{Class, Fault, Ran};
use crate::telemetry::AttemptOutcome;
use crate::timeout::{Expired, expired};

impl Run<'_> {
    /// A deadline of the attempt has passed.
    #[cold]
    pub(super) fn expired(&mut self, at: Tick) -> Next {
        // The coarse clock may be behind the timer.
        self.now = self.read_clock(self.settings()).max(at);
        match expired(self.call_deadline, self.attempt_deadline, at) {
            Some(Expired::Attempt) => self.failed(Fault::timeout(), Policy::AttemptTimeout),
            _ => {
                self.end_span(AttemptOutcome::TimedOut);
                self.ran = Ran::Unknown;
                if self.is_watched() {
                    self.tell_failed(Fault::timeout(), Policy::CallTimeout);
                }
                self.leave_gate(Some(Fault::timeout()));
                match self.ticket.take() {
                    Some(ticket) if self.overslept => ticket.finish(Outcome::Ignored),
                    Some(ticket) => ticket.cut_short(),
                    None => {}
                }
                self.past_deadline(Fault::timeout())
            }
        }
    }

    /// The deadline has passed before the next attempt could start.
    #[cold]
    pub(super) fn too_late(&mut self) -> Next {
        let fault = self.report.map_or(Fault::timeout().ran(Ran::No), |report| report.fault);
        self.settle_call(if self.attempts == 0 { Outcome::Ignored } else { self.outcome_of(fault) });
        self.past_deadline(fault)
    }

    pub(super) fn give_up_at(&mut self, from: Policy, fault: Fault) -> Next {
        let kind = match from {
            Policy::AttemptTimeout => Kind::TimedOut,
            policy if is_rejection(policy) => Kind::Rejected,
            _ => Kind::Failed,
        };
        self.give_up(kind, from, fault)
    }

    pub(super) fn give_up(&mut self, kind: Kind, decided_by: Policy, fault: Fault) -> Next {
        self.settle_call(self.outcome_of(fault));
        self.end(kind, decided_by, fault)
    }

    /// What a fault is to the circuit.
    pub(super) fn outcome_of(&self, fault: Fault) -> Outcome {
        if self.overslept && fault.class() == Class::Timeout {
            // Nobody knows whether the peer would have answered in time.
            return Outcome::Ignored;
        }
        match &self.settings().recipe.breaker {
            Some(breaker) => breaker.outcome_of(fault),
            // A shared circuit has no lists of names of this guard's.
            None if fault.counts() => Outcome::Failure,
            None => Outcome::Ignored,
        }
    }

    /// Where the breaker counts calls, the call's end is its outcome.
    pub(super) fn settle_call(&mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            if self.now == Tick::NEVER { ticket.finish(outcome) } else { ticket.finish_at(outcome, self.now) }
        }
    }

    /// The deadline has passed.
    pub(super) fn past_deadline(&mut self, fault: Fault) -> Next {
        self.end(Kind::TimedOut, Policy::CallTimeout, fault)
    }

    pub(super) fn end(&mut self, kind: Kind, decided_by: Policy, fault: Fault) -> Next {
        self.return_token();
        let report = self.report_of(kind, decided_by, fault);
        if self.is_watched() && self.terms.role != Role::First {
            self.tell_given_up(&report);
        }
        self.report = Some(report);
        Next::GiveUp
    }

    /// What is known now.
    pub(super) fn report_of(&self, kind: Kind, decided_by: Policy, fault: Fault) -> Report {
        Report { kind, decided_by, ran: self.ran, attempts: self.attempts, fault }
    }

    /// The answer of the peer is returned although it was judged a fault. A guard around, which may judge it likewise, must
    /// not spend its retries on what this one has spent its own on.
    #[cold]
    pub(super) fn answered_after_all(&self) -> Report {
        let report = self.final_report();
        tell_spent(!report.outward().is_transient());
        report
    }

    /// Why the call was given up.
    #[cold]
    pub(super) fn final_report(&self) -> Report {
        self.report.expect("a call that is given up has a report")
    }
}
