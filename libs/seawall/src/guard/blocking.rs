//! A guard around code that blocks.

use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::call_builder::{CallBuilder, Terms};
use super::decide::{Next, Run};
use super::ended::{Ended, Last};
use super::extended::{self, BlockingExecutor, Route};
use super::extras::{DeadLetterSink, IntoExtras};
use super::rare::enter_span;
use super::{Attempt, Inner};
use crate::breaker::OnPanic;
use crate::clock::{Clock, Tick};
use crate::error::{Error, View};
use crate::fallback::{BlockingFallback, Fallback};
use crate::fault::Judge;

impl<'g, J, X: IntoExtras<'g>> CallBuilder<'g, J, X> {
    /// Runs a blocking operation on this thread, with everything that the guard and the call have but two: nobody can
    /// interrupt code that blocks, so an attempt timeout does not end it, and nothing runs beside it, so there are no hedges.
    /// Give [`Attempt::time_allowed`] to whatever blocks. Between attempts, and while it waits for a turn or a place, the
    /// thread sleeps. It needs no runtime.
    ///
    /// Don't call it in async code: it blocks the executor's thread.
    ///
    /// ```
    /// use seawall::{Guard, Retry};
    /// let disk = Guard::builder("disk").retry(Retry::max_attempts(2)).build()?;
    /// let bytes = disk.idempotent().run(|_attempt| std::fs::read("Cargo.toml"))?;
    /// assert!(!bytes.is_empty());
    /// let theme = disk.idempotent().or_value(b"light".to_vec()).run(|_| std::fs::read("/no/such/file"));
    /// # assert!(theme.is_err(), "a file that is not there is an answer");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<O, T, E, K>(self, operation: O) -> Result<<X::Fallback as Fallback<T, E>>::Output, Error<E>>
    where
        O: FnMut(Attempt) -> Result<T, E>,
        J: Judge<T, E, K>,
        X::Fallback: BlockingFallback<T, E>,
        X::DeadLetter: DeadLetterSink<E>,
    {
        let extras = self.extras.into_extras();
        let route = Route::new(self.guard, self.terms, extras.failover);
        extended::run(route, extras, Blocking { operation, judge: self.judge, kind: PhantomData })
    }
}

/// One attempt at a time, on this thread.
struct Blocking<O, J, K> {
    operation: O,
    judge: J,
    kind: PhantomData<fn() -> K>,
}

impl<O, J, K, T, E> BlockingExecutor<T, E> for Blocking<O, J, K>
where
    O: FnMut(Attempt) -> Result<T, E>,
    J: Judge<T, E, K>,
{
    const VIEW: View<E> = J::view;

    fn execute<'g>(&mut self, guard: &'g Inner, terms: Terms<'g>) -> Ended<T, E> {
        let mut run = Run::new(guard, terms);
        let mut last: Last<T, E> = None;
        let mut next = run.start_attempt();
        loop {
            next = match next {
                Next::Start => {
                    last.take_if(|last| last.is_ok());
                    let attempt = run.attempt();
                    let armed = OnPanic(&mut run.ticket);
                    let in_span = enter_span(&run.rare);
                    let result = run.within.run(run.deadline, || (self.operation)(attempt));
                    drop(in_span);
                    let fault = self.judge.judge(&result);
                    armed.disarm();
                    match result {
                        Ok(value) if fault.is_none() => {
                            run.succeeded();
                            return Ended::Good(value);
                        }
                        result => run.judged::<T, E, J, K>(result, fault, &mut last),
                    }
                }
                Next::Again => run.start_attempt(),
                Next::Wait => {
                    sleep_until(run.resume_at, &guard.clock, |_| Poll::<()>::Pending);
                    run.resumed();
                    run.start_attempt()
                }
                Next::Queue => {
                    let at = run.resume_at;
                    match sleep_until(at, &guard.clock, |cx| run.poll_place(cx)) {
                        Some(next) => next,
                        None => run.waited(),
                    }
                }
                Next::Hold => {
                    let at = run.suspended().min(run.resume_at);
                    sleep_until(at, &guard.clock, |_| Poll::<()>::Pending);
                    run.released(at)
                }
                Next::GiveUp => return run.given_up::<T, E, J, K>(last),
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
