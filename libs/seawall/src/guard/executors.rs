//! The ways in which the operation of a call is run: one attempt at a time, or with hedges beside it.

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;

use super::call_builder::{CallBuilder, Terms};
use super::extended::{self, Executor, Route};
use super::extras::{DeadLetterSink, Extras, Hedging, Plain, Unhedged};
use super::loan::{Lender, Loan};
use super::progress::{Ended, Progress};
use super::{Attempt, Call, Inner, Operation};
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

    /// As [`call`](CallBuilder::call), for an operation that works on something of the caller's: a connection, a transaction.
    /// Each attempt is lent it anew, and gives it back when it ends, also if it ran out of time.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # struct Connection; impl Connection { async fn query(&mut self) -> std::io::Result<u32> { Ok(3) } }
    /// # let mut connection = Connection;
    /// let database = seawall::Guard::builder("database").build()?;
    /// let rows = database
    ///     .idempotent()
    ///     .call_on(&mut connection, async |mut connection, _attempt| connection.query().await)
    ///     .await?;
    /// assert_eq!(rows, 3);
    /// # Ok(()) }
    /// ```
    pub fn call_on<'c, C, F, Fut, T, E, K>(
        self,
        context: &'c mut C,
        mut operation: F,
    ) -> Call<'g, impl FnMut(Attempt) -> Fut, J, K>
    where
        C: ?Sized,
        F: FnMut(Loan<'c, C>, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
    {
        let lender = Lender::new(context);
        self.call(move |attempt| operation(lender.lend(), attempt))
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

    /// As [`call`](CallBuilder::call), for an operation that works on something of the caller's: a connection, a transaction.
    /// Each attempt is lent it anew, and gives it back when it ends, also if it ran out of time.
    pub async fn call_on<'c, C, O, Fut, T, E, K>(
        self,
        context: &'c mut C,
        mut operation: O,
    ) -> Result<F::Output, Error<E>>
    where
        C: ?Sized,
        O: FnMut(Loan<'c, C>, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let lender = Lender::new(context);
        self.call(move |attempt| operation(lender.lend(), attempt)).await
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
