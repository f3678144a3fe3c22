//! Who lets an attempt through: the breaker, the rate limit and the bulkhead, and waiting for the latter two.

use std::task::{Context, Poll};

use super::decide::{Next, Run};
use super::{Inner, Settings};
use crate::breaker::{Outcome, Refused, Scope};
use crate::bulkhead::{Entry, Gate, Permit, Waiter};
use crate::chaos::{Injector, Trouble};
use crate::clock::Tick;
use crate::error::{Kind, Policy};
use crate::fault::{Class, Fault, Verdict};
use crate::rate::Reservation;

/// What a call waits for before its attempt can start.
pub(super) enum Queued<'g> {
    /// Its turn within the rate limit.
    Turn(Reservation<'g>),
    /// A place in the bulkhead.
    Line(Waiter<'g>),
}

/// The limits have let an attempt through, into this place of the bulkhead if there is one.
pub(super) struct Admitted<'g>(pub(super) Option<Permit<'g>>);

/// What an attempt has come upon instead.
pub(super) enum Obstacle<'g> {
    /// It is not let through.
    Refused(Fault, Policy),
    /// Its turn comes later.
    Turn(Reservation<'g>, Tick),
    /// It has to stand in line.
    Line(Waiter<'g>),
}

/// Asks the rate limiter and then the bulkhead.
#[inline]
pub(super) fn ask_limits(settings: &Settings) -> Result<Admitted<'_>, Obstacle<'_>> {
    if let Some(limiter) = &settings.limiter {
        match limiter.reserve() {
            Err(limited) => {
                return Err(Obstacle::Refused(
                    Fault::rejected().after(limited.retry_after()),
                    Policy::RateLimit,
                ));
            }
            Ok(turn) => {
                if let Some(at) = turn.at() {
                    return Err(Obstacle::Turn(turn, at));
                }
            }
        }
    }
    ask_gate(settings)
}

#[inline]
fn ask_gate(settings: &Settings) -> Result<Admitted<'_>, Obstacle<'_>> {
    let Some(gate) = &settings.gate else { return Ok(Admitted(None)) };
    match gate.enter() {
        Ok(Entry::Inside(permit)) => Ok(Admitted(Some(permit))),
        Ok(Entry::Waiting(waiter)) => Err(Obstacle::Line(waiter)),
        Err(_) => Err(Obstacle::Refused(Fault::rejected(), Policy::Bulkhead)),
    }
}

/// An attempt has ended: its place is free, and what it took may teach the limit something.
#[inline(always)]
pub(super) fn leave_gate(
    permit: Option<Permit<'_>>,
    settings: &Settings,
    guard: &Inner,
    launched_at: Tick,
    fault: Option<Fault>,
) {
    if let (Some(permit), Some(gate)) = (permit, &settings.gate) {
        if gate.learns() {
            teach(gate, guard, launched_at, fault);
        }
        drop(permit);
    }
}

#[inline(never)]
fn teach(gate: &Gate, guard: &Inner, launched_at: Tick, fault: Option<Fault>) {
    let overloaded =
        fault.is_some_and(|fault| fault.class() == Class::Timeout || fault.verdict() == Verdict::Throttled);
    gate.answered(guard.clock.precise().since(launched_at), overloaded);
}

impl<'g> Run<'g> {
    /// Goes on from what the limits have said.
    #[inline]
    pub(super) fn admitted(&mut self, answer: Result<Admitted<'g>, Obstacle<'g>>) -> Next {
        match answer {
            Ok(Admitted(permit)) => {
                self.permit = permit;
                self.launch()
            }
            Err(obstacle) => self.held_up(obstacle),
        }
    }

    #[cold]
    pub(super) fn held_up(&mut self, obstacle: Obstacle<'g>) -> Next {
        match obstacle {
            Obstacle::Refused(fault, by) => self.not_admitted(fault, by),
            Obstacle::Turn(turn, at) if at >= self.call_deadline => {
                // Its turn would come too late: give it back and say when it would have come.
                drop(turn);
                let wait = at.since(self.guard.clock.precise());
                self.not_admitted(Fault::rejected().after(wait), Policy::RateLimit)
            }
            Obstacle::Turn(turn, at) => self.queue(Queued::Turn(turn), at),
            Obstacle::Line(waiter) => {
                let until = waiter.until().min(self.call_deadline);
                self.queue(Queued::Line(waiter), until)
            }
        }
    }

    fn queue(&mut self, queued: Queued<'g>, until: Tick) -> Next {
        self.resume_at = until;
        self.rare_mut().queued = Some(queued);
        Next::Queue
    }

    /// The breaker did not let the attempt through.
    #[inline(never)]
    pub(super) fn refused(&mut self, refused: Refused) -> Next {
        self.not_admitted(refused_fault(refused), Policy::Breaker)
    }

    /// A policy did not let the attempt through, and nothing was sent.
    #[inline(never)]
    pub(super) fn not_admitted(&mut self, fault: Fault, by: Policy) -> Next {
        self.tries += 1;
        self.remember_rejection(fault, by);
        self.release_unused();
        if !self.retry().is_some_and(|retry| retry.on_rejection) {
            self.settle_call(Outcome::Ignored);
            return self.end(Kind::Rejected, by, fault);
        }
        self.next(fault, by)
    }

    /// An attempt that never started says nothing about the peer, and a probe's place is free again.
    pub(super) fn release_unused(&mut self) {
        if self.settings().scope == Scope::Attempt {
            self.settle_call(Outcome::Ignored);
        }
    }

    /// Looks whether a place has come. Nobody tells of a turn: that is a matter of time.
    pub(super) fn poll_place(&mut self, cx: &Context<'_>) -> Poll<Next> {
        match self.rare.as_deref_mut().and_then(|rare| rare.queued.as_mut()) {
            Some(Queued::Line(waiter)) => match waiter.poll_enter(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(permit) => {
                    self.permit = Some(permit);
                    Poll::Ready(self.leave_queue())
                }
            },
            _ => Poll::Pending,
        }
    }

    /// The time to look again has come: the turn, the end of patience, or the deadline.
    #[cold]
    pub(super) fn waited(&mut self) -> Next {
        match self.rare.as_deref_mut().and_then(|rare| rare.queued.take()) {
            Some(Queued::Turn(turn)) => {
                turn.used();
                self.resumed();
                self.admitted(ask_gate(self.settings()))
            }
            Some(Queued::Line(waiter)) if self.resume_at < self.call_deadline => match waiter.give_up() {
                Ok(permit) => {
                    self.permit = Some(permit);
                    self.leave_queue()
                }
                Err(_) => {
                    self.resumed();
                    self.not_admitted(Fault::rejected(), Policy::Bulkhead)
                }
            },
            _ => {
                self.resumed();
                self.release_unused();
                self.too_late()
            }
        }
    }

    fn leave_queue(&mut self) -> Next {
        self.rare_mut().queued = None;
        self.now = self.read_clock(self.settings());
        if self.now >= self.call_deadline {
            self.release_unused();
            return self.too_late();
        }
        self.launch()
    }

    /// What chaos does to the attempt that has just been launched.
    #[cold]
    pub(super) fn make_trouble(&mut self) -> Next {
        if self.now == Tick::NEVER {
            self.now = self.read_clock(self.settings());
        }
        match self.settings().chaos.as_deref().map_or(Trouble::None, Injector::draw) {
            Trouble::None => return Next::Start,
            Trouble::Fails(fault) => return self.failed(fault, Policy::Operation),
            Trouble::Hangs => self.resume_at = Tick::NEVER,
            Trouble::IsSlow(latency) => self.resume_at = self.now + latency,
        }
        Next::Hold
    }

    /// The time to look again has come for an attempt that chaos holds up: it starts, or has run out of time.
    #[cold]
    pub(super) fn released(&mut self, at: Tick) -> Next {
        if at == self.resume_at { Next::Start } else { self.expired(at) }
    }

    /// The attempt has ended.
    #[inline(always)]
    pub(super) fn leave_gate(&mut self, fault: Option<Fault>) {
        leave_gate(self.permit.take(), self.settings(), self.guard, self.launched_at, fault);
    }
}

/// What an open circuit says to whoever asks.
pub(super) fn refused_fault(refused: Refused) -> Fault {
    match refused.retry_after() {
        Some(wait) => Fault::rejected().after(wait),
        None => Fault::rejected(),
    }
}

/// Whether this policy refuses attempts, so that what comes from it was never sent.
pub(super) fn is_rejection(policy: Policy) -> bool {
    matches!(policy, Policy::Breaker | Policy::RateLimit | Policy::Bulkhead)
}
