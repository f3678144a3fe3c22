//! The future of a plain call.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::call_builder::Terms;
use super::ended::Ended;
use super::progress::Progress;
use super::{Inner, Operation};
use crate::error::Error;
use crate::fault::{Causes, Judge, kind};

pin_project! {
    /// A guarded call: call timeout, retry, breaker and attempt timeout in one state machine.
    ///
    /// Dropping it at any point is safe: permits, probes and budget tokens go back by being dropped with it.
    #[must_use = "futures do nothing unless polled"]
    pub struct Call<'g, O: Operation, J = Causes, K = kind::Standard> {
        operation: O,
        judge: J,
        guard: &'g Inner,
        #[pin]
        progress: Progress<'g, O::Future, O::Output, O::Error>,
        kind: PhantomData<fn() -> K>,
    }
}

impl<'g, O: Operation, J, K> Call<'g, O, J, K> {
    #[inline]
    pub(super) fn new(guard: &'g Inner, terms: Terms<'g>, judge: J, operation: O) -> Self {
        Call { operation, judge, guard, progress: Progress::new(guard, terms), kind: PhantomData }
    }
}

impl<O, J, K> Future for Call<'_, O, J, K>
where
    O: Operation,
    J: Judge<O::Output, O::Error, K>,
{
    type Output = Result<O::Output, Error<O::Error>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.progress.poll_with(this.operation, this.judge, cx)) {
            Ended::Good(value) | Ended::Bad { value, .. } => Ok(value),
            Ended::Failed(error) => Err(error),
        })
    }
}

impl<O: Operation, J, K> fmt::Debug for Call<'_, O, J, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("guard", &self.guard.watch.name).finish_non_exhaustive()
    }
}
