//! Who lets an attempt through: the breaker, the rate limit and the bulkhead, and waiting for the latter two.

use std::task::{Context, Poll};

use super::decide::{Next, Run};
use crate::breaker::{Outcome, Refused, Scope};
use crate::bulkhead::{Entry, Gate, Waiter};
use crate::chaos::{Injector, Trouble};
use crate::clock::Tick;
use crate::error::{Kind, Policy};
use crate::fault::{Class, Fault, Verdict};
use crate::rate::Reservation;

/// What a call waits for before its attempt can start. Behind a pointer in the call, because most calls never wait.
pub(super) enum Queued<'g> {
    /// Its turn within the rate limit.
    Turn(Reservation<'g>),
    /// A place in the bulkhead.
    Line(Waiter<'g>),
}

impl<'g> Run<'g> {
    /// Asks the rate limiter and then the bulkhead.
    #[inline]
    pub(super) fn ask_limits(&mut self) -> Next {
        if let Some(limiter) = &self.settings().limiter {
            match limiter.reserve() {
                Err(limited) => {
                    return self
                        .not_admitted(Fault::rejected().after(limited.retry_after()), Policy::RateLimit);
                }
                Ok(turn) => {
                    if let Some(at) = turn.at() {
                        return self.wait_for_turn(turn, at);
                    }
                }
            }
        }
        self.ask_gate()
    }

    #[cold]
    fn wait_for_turn(&mut self, turn: Reservation<'g>, at: Tick) -> Next {
        if at >= self.call_deadline {
            // Its turn would come too late: give it back and say when it would have come.
            let wait = at.since(self.guard.clock.precise());
            return self.not_admitted(Fault::rejected().after(wait), Policy::RateLimit);
        }
        self.resume_at = at;
        self.queued = Some(Box::new(Queued::Turn(turn)));
        Next::Queue
    }

    #[inline]
    fn ask_gate(&mut self) -> Next {
        if let Some(gate) = &self.settings().gate {
            match gate.enter() {
                Ok(Entry::Inside(permit)) => self.permit = Some(permit),
                Ok(Entry::Waiting(waiter)) => {
                    self.resume_at = waiter.until().min(self.call_deadline);
                    self.queued = Some(Box::new(Queued::Line(waiter)));
                    return Next::Queue;
                }
                Err(_) => return self.not_admitted(Fault::rejected(), Policy::Bulkhead),
            }
        }
        self.launch()
    }

    /// The breaker did not let the attempt through.
    #[inline(never)]
    pub(super) fn refused(&mut self, refused: Refused) -> Next {
        let fault = match refused.retry_after() {
            Some(wait) => Fault::rejected().after(wait),
            None => Fault::rejected(),
        };
        self.not_admitted(fault, Policy::Breaker)
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
        match self.queued.as_deref_mut() {
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
        match self.queued.take().map(|queued| *queued) {
            Some(Queued::Turn(turn)) => {
                turn.used();
                self.resumed();
                self.ask_gate()
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
        self.queued = None;
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

    /// The attempt has ended: its place is free, and what it took may teach the limit something.
    #[inline(always)]
    pub(super) fn leave_gate(&mut self, fault: Option<Fault>) {
        if let (Some(permit), Some(gate)) = (self.permit.take(), &self.settings().gate) {
            if gate.learns() {
                self.teach(gate, fault);
            }
            drop(permit);
        }
    }

    #[inline(never)]
    fn teach(&self, gate: &Gate, fault: Option<Fault>) {
        let overloaded = fault
            .is_some_and(|fault| fault.class() == Class::Timeout || fault.verdict() == Verdict::Throttled);
        gate.answered(self.guard.clock.precise().since(self.launched_at), overloaded);
    }
}

/// Whether this policy refuses attempts, so that what comes from it was never sent.
pub(super) fn is_rejection(policy: Policy) -> bool {
    matches!(policy, Policy::Breaker | Policy::RateLimit | Policy::Bulkhead)
}
