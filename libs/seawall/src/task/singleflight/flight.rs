//! One execution and those who wait for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, MutexGuard};

/// An execution that is under way or over.
///
/// Whether it is over and who waits for it stand behind one lock, so nobody can sit down to wait after the end: who comes
/// then sees the result.
#[derive(Debug)]
pub(crate) struct Flight<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    result: Option<T>,
    /// Of those who wait. A seat that was left is empty and goes to the next who comes.
    seats: Vec<Option<Waker>>,
    left: Vec<usize>,
}

impl<T> Flight<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Flight { state: Mutex::new(State { result: None, seats: Vec::new(), left: Vec::new() }) })
    }

    /// Ends it, and wakes all who wait. Only the first end counts.
    pub(crate) fn land(&self, result: T) {
        let seats = {
            let mut state = self.lock();
            if state.result.is_some() {
                return;
            }
            state.result = Some(result);
            std::mem::take(&mut state.seats)
        };
        // Outside of the lock: whoever is woken wants it.
        seats.into_iter().flatten().for_each(Waker::wake);
    }

    /// Whether it is over.
    pub(crate) fn has_landed(&self) -> bool {
        self.lock().result.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for an execution to end. Polled once when it sits down and once when it is called, and not in between.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    flight: Arc<Flight<T>>,
    seat: Option<usize>,
}

impl<T> Waiting<T> {
    pub(crate) fn new(flight: Arc<Flight<T>>) -> Self {
        Waiting { flight, seat: None }
    }
}

impl<T: Clone> Future for Waiting<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let mut state = this.flight.lock();
        if let Some(result) = &state.result {
            let result = result.clone();
            this.seat = None;
            return Poll::Ready(result);
        }
        match this.seat {
            Some(seat) => match &mut state.seats[seat] {
                Some(waker) => waker.clone_from(cx.waker()),
                empty => *empty = Some(cx.waker().clone()),
            },
            None => {
                let waker = Some(cx.waker().clone());
                this.seat = Some(match state.left.pop() {
                    Some(seat) => {
                        state.seats[seat] = waker;
                        seat
                    }
                    None => {
                        state.seats.push(waker);
                        state.seats.len() - 1
                    }
                });
            }
        }
        Poll::Pending
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        let Some(seat) = self.seat else { return };
        let mut state = self.flight.lock();
        if state.result.is_none() {
            state.seats[seat] = None;
            state.left.push(seat);
        }
    }
}
