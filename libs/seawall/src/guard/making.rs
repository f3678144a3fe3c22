//! How a call is made: its operation comes last.

use std::future::Future;

use super::call_builder::CallBuilder;
use super::extended::Route;
use super::extras::sealed::HedgeMode;
use super::extras::{DeadLetterSink, Extras, Plain, Unhedged};
use super::loan::{Lender, Loan};
use super::{Attempt, Call, ExtendedCall, Operation};
use crate::fallback::Fallback;
use crate::fault::Judge;

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

impl<'g, J, H: HedgeMode, F, D> CallBuilder<'g, J, Extras<'g, H, F, D>> {
    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation is called once for each attempt. An answer that is judged a fault is retried like an error; if the call
    /// is given up with one, the fallback stands in for it, or it is returned as it is.
    ///
    /// With [`hedged`](CallBuilder::hedged) the operation may be run several times beside itself, so the call must be declared
    /// safe: one that is not is made without hedges. Each hedge costs a token of the budget; without one there is none. The
    /// first good answer wins, and the others are dropped without being held against the peer. If all fail, the error is that
    /// of the first, over all attempts.
    pub fn call<O, Fut, T, E, K>(self, operation: O) -> ExtendedCall<'g, O, J, K, F, D, F::Work>
    where
        O: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let route = Route::new(self.guard, self.terms, self.extras.failover);
        ExtendedCall::new(route, self.extras, self.judge, operation)
    }
}

impl<'g, J, F, D> CallBuilder<'g, J, Extras<'g, Unhedged, F, D>> {
    /// As [`call`](CallBuilder::call), for an operation that works on something of the caller's: a connection, a transaction.
    /// Each attempt is lent it anew, and gives it back when it ends, also if it ran out of time.
    pub fn call_on<'c, C, O, Fut, T, E, K>(
        self,
        context: &'c mut C,
        mut operation: O,
    ) -> ExtendedCall<'g, impl FnMut(Attempt) -> Fut, J, K, F, D, F::Work>
    where
        C: ?Sized,
        O: FnMut(Loan<'c, C>, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        J: Judge<T, E, K>,
        F: Fallback<T, E>,
        D: DeadLetterSink<E>,
    {
        let lender = Lender::new(context);
        self.call(move |attempt| operation(lender.lend(), attempt))
    }
}
