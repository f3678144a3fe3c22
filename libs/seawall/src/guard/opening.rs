//! The first attempt of a call that nothing holds up.
//!
//! Nearly all calls are like that: they are let through at once, and answer at once. Such a call needs little of what a
//! [`Run`] keeps between polls and attempts, so it is made without one. Where anything else turns out (a refusal, a
//! line to wait in, a failure, an operation that suspends) what is known so far becomes a `Run`, and that goes on.

use super::Inner;
use super::admission::{Obstacle, leave_gate, refused_fault};
use super::ambient::{Context, tell_spent};
use super::beginning::{Beginning, attempt_deadline, budget, may_retry};
use super::call_builder::Terms;
use super::decide::{Next, Run};
use super::tell::Teller;
use crate::breaker::{Outcome, Refused, Slot};
use crate::bulkhead::Permit;
use crate::clock::Tick;
use crate::error::{Kind, Policy, Report};
use crate::fault::{Fault, Ran};

/// What was taken for a first attempt that starts at once.
pub(super) struct Opening<'g> {
    pub(super) begin: Beginning<'g>,
    pub(super) within: Context,
    pub(super) attempt_deadline: Tick,
    pub(super) deadline: Tick,
    pub(super) ticket: Slot<'g>,
    pub(super) permit: Option<Permit<'g>>,
}

/// Why the first attempt does not start at once.
pub(super) enum Delay<'g> {
    /// It was refused, and that is all.
    Refused(Report),
    /// It was refused, which is tried again, or has to wait. Behind a pointer, so that the others need not be moved about.
    HeldUp(Box<HeldUp<'g>>),
    /// Somebody watches, or chaos is at work, or it is too late.
    Unusual,
}

/// A first attempt that has to wait, and what was taken for it so far.
pub(super) struct HeldUp<'g> {
    begin: Beginning<'g>,
    ticket: Slot<'g>,
    by: Obstacle<'g>,
}

/// The first attempt starts: the context of its operation, when it runs out of time by itself, and when in all.
#[inline(always)]
pub(super) fn first_attempt(
    guard: &Inner,
    terms: &Terms<'_>,
    begin: &Beginning<'_>,
    ticket: &mut Slot<'_>,
) -> (Context, Tick, Tick) {
    let Beginning { settings, around, now, call_deadline } = *begin;
    // A ticket's time starts with the operation, not in a line.
    if ticket.is_timed() {
        ticket.start_if_not();
    }
    if let Some(budget) = budget(settings, terms) {
        budget.first_attempt_at(now);
    }
    let attempt_deadline = attempt_deadline(settings, terms, now);
    let within = around.inner(0, may_retry(settings, terms), guard.clock.id());
    (within, attempt_deadline, call_deadline.min(attempt_deadline))
}

/// The operation has answered at once, and well.
#[inline(always)]
pub(super) fn succeeded(
    guard: &Inner,
    terms: &Terms<'_>,
    begin: &Beginning<'_>,
    ticket: &mut Slot<'_>,
    permit: Option<Permit<'_>>,
) {
    let Beginning { settings, around, now, .. } = *begin;
    // It was ready at once, so the time at which it started is the time now.
    let known = !ticket.is_timed() && now != Tick::NEVER;
    ticket.settle(Outcome::Success, known.then_some(now));
    leave_gate(permit, settings, guard, now, None);
    if let Some(budget) = budget(settings, terms) {
        budget.succeeded(true);
    }
    if around.is_spent() {
        tell_spent(false);
    }
}

/// The circuit does not let the first attempt through.
#[inline(never)]
pub(super) fn refused_by_circuit<'g>(
    guard: &'g Inner,
    terms: &Terms<'g>,
    begin: &Beginning<'g>,
    refused: Refused,
) -> Delay<'g> {
    let fault = refused_fault(refused);
    if retries_rejections(terms, begin) {
        let by = Obstacle::Refused(fault, Policy::Breaker);
        return Delay::HeldUp(Box::new(HeldUp { begin: *begin, ticket: Slot::EMPTY, by }));
    }
    Delay::Refused(refusal(guard, terms, begin.now, fault, Policy::Breaker))
}

/// A limit does not let the first attempt through, or not yet.
#[cold]
pub(super) fn held_up<'g>(
    guard: &'g Inner,
    terms: &Terms<'g>,
    begin: &Beginning<'g>,
    mut ticket: Slot<'g>,
    by: Obstacle<'g>,
) -> Delay<'g> {
    match by {
        Obstacle::Refused(fault, by) if !retries_rejections(terms, begin) => {
            ticket.settle(Outcome::Ignored, None);
            Delay::Refused(refusal(guard, terms, begin.now, fault, by))
        }
        by => Delay::HeldUp(Box::new(HeldUp { begin: *begin, ticket, by })),
    }
}

fn retries_rejections(terms: &Terms<'_>, begin: &Beginning<'_>) -> bool {
    !terms.single && begin.settings.retry.as_ref().is_some_and(|retry| retry.on_rejection)
}

/// Most calls that are refused end there, so they cost no more than they must.
#[inline]
fn refusal(guard: &Inner, terms: &Terms<'_>, now: Tick, fault: Fault, decided_by: Policy) -> Report {
    Teller::new(guard, terms.labels).remember_rejection(now, fault, decided_by);
    Report { kind: Kind::Rejected, decided_by, ran: Ran::No, attempts: 0, fault }
}

impl<'g> Delay<'g> {
    /// The long way, from where the call stands.
    #[cold]
    pub(super) fn go_on(self, run: &mut Run<'g>) -> Next {
        match self {
            Delay::Refused(report) => run.end(report.kind, report.decided_by, report.fault),
            Delay::HeldUp(held_up) => {
                let HeldUp { begin, ticket, by } = *held_up;
                run.begun(begin);
                run.ticket = ticket;
                run.held_up(by)
            }
            Delay::Unusual => run.start_attempt(),
        }
    }
}

impl<'g> Run<'g> {
    /// The first attempt has started without this.
    #[cold]
    pub(super) fn opened(guard: &'g Inner, terms: Terms<'g>, opening: Opening<'g>) -> Self {
        let Opening { begin, within, attempt_deadline, deadline, ticket, permit } = opening;
        let mut run = Run::new(guard, terms);
        run.begun(begin);
        (run.attempts, run.tries, run.launched_at) = (1, 1, begin.now);
        (run.within, run.attempt_deadline, run.deadline) = (within, attempt_deadline, deadline);
        (run.ticket, run.permit) = (ticket, permit);
        run
    }
}
