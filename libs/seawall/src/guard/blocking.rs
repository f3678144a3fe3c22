//! A guard around code that blocks.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::decide::{Next, Run};
use super::{Attempt, Request};
use crate::breaker::OnPanic;
use crate::clock::{Clock, Tick};
use crate::error::Error;
use crate::fault::Classify;

impl<C> Request<'_, C> {
    /// Runs a blocking operation on this thread, with everything that the guard has but one: nobody can interrupt code that
    /// blocks, so an attempt timeout does not end it. Give [`Attempt::time_allowed`] to whatever blocks. Between attempts,
    /// and while it waits for a turn or a place, the thread sleeps.
    ///
    /// Don't call it in async code: it blocks the executor's thread.
    ///
    /// ```
    /// use seawall::{Guard, Retry};
    /// let disk = Guard::builder("disk").retry(Retry::max_attempts(2)).build()?;
    /// let bytes = disk.idempotent().run(|_attempt| std::fs::read("Cargo.toml"))?;
    /// assert!(!bytes.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<F, T, E>(self, mut operation: F) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
        C: Classify<T, E>,
    {
        let mut run = Run::new(self.guard, self.terms);
        let mut last = None;
        let mut next = run.start_attempt();
        loop {
            next = match next {
                Next::Start => {
                    let attempt = run.attempt();
                    let mut fault = None;
                    let armed = OnPanic(&mut run.ticket);
                    let result = run.within.run(run.deadline, || {
                        let result = operation(attempt);
                        fault = self.classify.classify(&result);
                        result
                    });
                    armed.disarm();
                    match result {
                        Ok(value) if fault.is_none() => {
                            run.succeeded();
                            return Ok(value);
                        }
                        result => {
                            let next = run.answered(fault, None);
                            match result {
                                Ok(value) if next == Next::GiveUp => {
                                    run.answered_after_all();
                                    return Ok(value);
                                }
                                Ok(_) => last = None,
                                Err(error) => last = Some(error),
                            }
                            next
                        }
                    }
                }
                Next::Again => run.start_attempt(),
                Next::Wait => {
                    sleep_until(run.resume_at, &run.guard.clock, |_| Poll::<()>::Pending);
                    run.resumed();
                    run.start_attempt()
                }
                Next::Queue => {
                    let (at, clock) = (run.resume_at, run.guard.clock.clone());
                    match sleep_until(at, &clock, |cx| run.poll_place(cx)) {
                        Some(next) => next,
                        None => run.waited(),
                    }
                }
                Next::Hold => {
                    let at = run.suspended().min(run.resume_at);
                    sleep_until(at, &run.guard.clock, |_| Poll::<()>::Pending);
                    run.released(at)
                }
                Next::GiveUp => return Err(Error { report: run.final_report(), last }),
            };
        }
    }
}

/// Sleeps until `at`, or until `poll` has something, of which it tells by the waker.
fn sleep_until<T>(at: Tick, clock: &Clock, mut poll: impl FnMut(&Context<'_>) -> Poll<T>) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut sleep = clock.custom_sleep(at);
    loop {
        if let Poll::Ready(value) = poll(&cx) {
            return Some(value);
        }
        match &mut sleep {
            None => {
                let left = at.since(clock.precise());
                if left.is_zero() {
                    return None;
                }
                thread::park_timeout(left);
            }
            // A clock of somebody else's wakes whoever sleeps on it.
            Some(sleep) => {
                if sleep.as_mut().poll(&mut cx).is_ready() {
                    return None;
                }
                thread::park();
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
