//! The ways in which the operation of a call is run: one attempt at a time, with hedges beside it, or borrowing.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::task::Poll;

use super::call_builder::{CallBuilder, Terms};
use super::decide::{Next, Run};
use super::extended::{self, Executor, Route};
use super::extras::sealed::IntoExtras as _;
use super::extras::{DeadLetterSink, Extras, Hedging, Plain, Unhedged};
use super::progress::{Ended, Progress};
use super::timer::Timer;
use super::{Attempt, Call, Inner, Operation};
use crate::breaker::OnPanic;
use crate::error::{Error, View};
use crate::fallback::Fallback;
use crate::fault::Judge;
use crate::hedge::HedgedProgress;

impl<'g, J> CallBuilder<'g, J, Plain> {
    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation is called once for each attempt.
    #[inline]
    pub fn call<F, Fut, T, E, K>(self, operation: F) -> Call<'g, F, J, K>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
    {
        Call::new(self.guard, self.terms, self.judge, operation)
    }

    /// As [`call`](CallBuilder::call), for an [`Operation`] that is no closure.
    #[inline]
    pub fn perform<O, K>(self, operation: O) -> Call<'g, O, J, K>
    where
        O: Operation,
        J: Judge<O::Output, O::Error, K>,
    {
        Call::new(self.guard, self.terms, self.judge, operation)
    }

    /// As [`call`](CallBuilder::call), for an async closure that borrows what it works on: a connection, a transaction.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Connection; impl Connection { async fn query(&mut self) -> std::io::Result<u32> { Ok(3) } }
    /// # let connection = &mut Connection;
    /// let database = seawall::Guard::builder("database").build()?;
    /// let rows = database.idempotent().call_mut(async |_attempt| connection.query().await).await?;
    /// assert_eq!(rows, 3);
    /// # Ok(()) }
    /// ```
    pub async fn call_mut<A, T, E, K>(self, operation: A) -> Result<T, Error<E>>
    where
        A: AsyncFnMut(Attempt) -> Result<T, E>,
        J: Judge<T, E, K>,
    {
        self.with_extras(Plain::into_extras).call_mut(operation).await
    }
}

impl<'g, J, F, D> CallBuilder<'g, J, Extras<'g, Unhedged, F, D>> {
    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation is called once for each attempt. An answer that is judged a fault is retried like an error; if the call
    /// is given up with one, the fallback stands in for it, or it is returned as it is.
    pub async fn call<O, Fut, T, E, K>(self, operation: O) -> Result<F::Output, Error<E>>
    where
        O: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let route = Route::new(self.guard, self.terms, self.extras.failover);
        extended::call(route, self.extras, Single { operation, judge: self.judge, kind: PhantomData }).await
    }

    /// As [`call`](CallBuilder::call), for an async closure that borrows what it works on: a connection, a transaction.
    pub async fn call_mut<A, T, E, K>(self, operation: A) -> Result<F::Output, Error<E>>
    where
        A: AsyncFnMut(Attempt) -> Result<T, E>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let route = Route::new(self.guard, self.terms, self.extras.failover);
        extended::call(route, self.extras, Borrowing { operation, judge: self.judge, kind: PhantomData })
            .await
    }
}

impl<'g, J, F, D> CallBuilder<'g, J, Extras<'g, Hedging, F, D>> {
    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation may be run several times beside itself, so the call must be declared safe: one that is not is made
    /// without hedges. Each hedge costs a token of the budget; without one there is none. The first good answer wins, and the
    /// others are dropped without being held against the peer. If all fail, the error is that of the first, over all attempts.
    pub async fn call<O, Fut, T, E, K>(self, operation: O) -> Result<F::Output, Error<E>>
    where
        O: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let route = Route::new(self.guard, self.terms, self.extras.failover);
        extended::call(route, self.extras, Hedged { operation, judge: self.judge, kind: PhantomData }).await
    }
}

/// One attempt at a time.
struct Single<O, J, K> {
    operation: O,
    judge: J,
    kind: PhantomData<fn() -> K>,
}

impl<O, J, K, Fut, T, E> Executor<T, E> for Single<O, J, K>
where
    O: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E, K>,
{
    const VIEW: View<E> = J::view;

    async fn execute<'g>(&mut self, guard: &'g Inner, terms: Terms<'g>) -> Ended<T, E> {
        let mut progress = pin!(Progress::new(guard, terms));
        poll_fn(|cx| progress.as_mut().poll_with(&mut self.operation, &self.judge, cx)).await
    }
}

/// With hedges beside the attempt.
struct Hedged<O, J, K> {
    operation: O,
    judge: J,
    kind: PhantomData<fn() -> K>,
}

impl<O, J, K, Fut, T, E> Executor<T, E> for Hedged<O, J, K>
where
    O: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    J: Judge<T, E, K>,
{
    const VIEW: View<E> = J::view;

    async fn execute<'g>(&mut self, guard: &'g Inner, terms: Terms<'g>) -> Ended<T, E> {
        let mut progress = pin!(HedgedProgress::new(guard, terms));
        poll_fn(|cx| progress.as_mut().poll_with(&mut self.operation, &self.judge, cx)).await
    }
}

/// One attempt at a time, each of which borrows from the operation.
struct Borrowing<A, J, K> {
    operation: A,
    judge: J,
    kind: PhantomData<fn() -> K>,
}

impl<A, J, K, T, E> Executor<T, E> for Borrowing<A, J, K>
where
    A: AsyncFnMut(Attempt) -> Result<T, E>,
    J: Judge<T, E, K>,
{
    const VIEW: View<E> = J::view;

    async fn execute<'g>(&mut self, guard: &'g Inner, terms: Terms<'g>) -> Ended<T, E> {
        let Borrowing { operation, judge, .. } = self;
        let mut run = Run::new(guard, terms);
        let mut last: Option<Result<T, E>> = None;
        let mut timer = pin!(Timer::new());
        let mut next = run.start_attempt();
        loop {
            next = match next {
                Next::Start => {
                    last.take_if(|last| last.is_ok());
                    let attempt = run.attempt();
                    let result = {
                        let armed = OnPanic(&mut run.ticket);
                        let future = run.within.run(run.deadline, || operation(attempt));
                        armed.disarm();
                        let mut future = pin!(future);
                        poll_fn(|cx| {
                            let armed = OnPanic(&mut run.ticket);
                            let polled = run.within.run(run.deadline, || future.as_mut().poll(cx));
                            let polled = polled.map(|result| (judge.judge(&result), result));
                            armed.disarm();
                            if let Poll::Ready(judged) = polled {
                                return Poll::Ready(Some(judged));
                            }
                            let at = run.suspended();
                            timer.as_mut().poll_until(at, &guard.clock, cx).map(|()| None)
                        })
                        .await
                    };
                    match result {
                        Some((None, Ok(value))) => {
                            run.succeeded();
                            return Ended::Good(value);
                        }
                        Some((fault, result)) => run.judged::<T, E, J, K>(result, fault, &mut last),
                        None => run.expired(run.deadline),
                    }
                }
                Next::Again => run.start_attempt(),
                Next::Wait => {
                    poll_fn(|cx| timer.as_mut().poll_until(run.resume_at, &guard.clock, cx)).await;
                    run.resumed();
                    run.start_attempt()
                }
                Next::Queue => {
                    let place = poll_fn(|cx| match run.poll_place(cx) {
                        Poll::Ready(next) => Poll::Ready(Some(next)),
                        Poll::Pending => {
                            timer.as_mut().poll_until(run.resume_at, &guard.clock, cx).map(|()| None)
                        }
                    })
                    .await;
                    match place {
                        Some(next) => next,
                        None => run.waited(),
                    }
                }
                Next::Hold => {
                    let at = run.suspended().min(run.resume_at);
                    poll_fn(|cx| timer.as_mut().poll_until(at, &guard.clock, cx)).await;
                    run.released(at)
                }
                Next::GiveUp => return run.given_up::<T, E, J, K>(last),
            };
        }
    }
}
