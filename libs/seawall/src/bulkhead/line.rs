//! Those who wait for a place, in the order in which they came.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use super::policy::{Full, Gate, Permit};
use crate::clock::Tick;
use crate::sync::{Mutex, MutexGuard};

/// The line. Whoever changes it holds its lock; nobody holds it while waking or waiting.
#[derive(Debug)]
pub(super) struct Line(Mutex<Queue>);

#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Arc<Seat>>);

/// A place in the line.
#[derive(Debug)]
pub(super) struct Seat {
    weight: u32,
    called: Mutex<Called>,
}

#[derive(Debug, Default)]
struct Called {
    /// A place inside was passed on to this one.
    granted: bool,
    waker: Option<Waker>,
}

impl Line {
    pub(super) fn new() -> Self {
        Line(Mutex::default())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many places the first one wants.
    pub(super) fn first_weight(&self) -> Option<u32> {
        self.0.front().map(|seat| seat.weight)
    }

    pub(super) fn join(&mut self, weight: u32) -> Arc<Seat> {
        let seat = Arc::new(Seat { weight, called: Mutex::default() });
        self.0.push_back(seat.clone());
        seat
    }

    /// Passes a place inside on to the first. Wake it when the line's lock is released.
    pub(super) fn pass_on(&mut self) -> Next {
        let Some(seat) = self.0.pop_front() else { return Next(None) };
        let mut called = seat.called();
        called.granted = true;
        Next(called.waker.take())
    }

    fn leave(&mut self, seat: &Arc<Seat>) {
        self.0.retain(|other| !Arc::ptr_eq(other, seat));
    }
}

impl Seat {
    fn called(&self) -> MutexGuard<'_, Called> {
        self.called.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom to wake.
#[must_use = "whoever was passed a place sleeps until it is woken"]
pub(super) struct Next(Option<Waker>);

impl Next {
    pub(super) fn wake(self) {
        if let Some(waker) = self.0 {
            waker.wake();
        }
    }
}

/// Somebody in the line. Dropping it is walking away; a place that was passed on to it goes to the next.
#[must_use = "dropping a waiter is walking away"]
pub struct Waiter<'a> {
    gate: &'a Gate,
    seat: Arc<Seat>,
    until: Tick,
    /// Inside, or gone.
    over: bool,
}

impl<'a> Waiter<'a> {
    pub(super) fn new(gate: &'a Gate, seat: Arc<Seat>, until: Tick) -> Self {
        Waiter { gate, seat, until, over: false }
    }

    /// When waiting ends in vain.
    #[must_use]
    pub fn until(&self) -> Tick {
        self.until
    }

    /// The place, as soon as it is this one's turn.
    pub fn poll_enter(&mut self, cx: &Context<'_>) -> Poll<Permit<'a>> {
        let mut called = self.seat.called();
        if called.granted {
            self.over = true;
            return Poll::Ready(Permit::new(self.gate, self.seat.weight));
        }
        match &mut called.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Walks away, unless a place was passed on to it in this very moment.
    pub fn give_up(mut self) -> Result<Permit<'a>, Full> {
        self.over = true;
        let weight = self.seat.weight;
        if self.walk_away() { Err(self.gate.refuse(weight)) } else { Ok(Permit::new(self.gate, weight)) }
    }

    /// False if a place was passed on to it.
    fn walk_away(&self) -> bool {
        let mut line = self.gate.line.lock();
        if self.seat.called().granted {
            return false;
        }
        line.leave(&self.seat);
        if line.len() == 0 {
            self.gate.line_ended();
            return true;
        }
        drop(line);
        // A lighter one behind it may fit.
        self.gate.admit_more();
        true
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.over && !self.walk_away() {
            drop(Permit::new(self.gate, self.seat.weight));
        }
    }
}

impl fmt::Debug for Waiter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("until", &self.until).finish_non_exhaustive()
    }
}
