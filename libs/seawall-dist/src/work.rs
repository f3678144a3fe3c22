//! What sagas and jobs share to run work that others wrote: panics become values, leases are kept, chance
//! comes from the operating system, and stores in memory have a clock.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::UNIX_EPOCH;

use seawall::{Clock, Tick};

use crate::Millis;
pub(crate) use crate::lease::keep_lease;
pub(crate) use crate::random::word as random;

/// A future whose panic is an error with the panic's message.
pub(crate) struct CatchPanic<F>(Pin<Box<F>>);

impl<F: Future> CatchPanic<F> {
    pub(crate) fn new(future: F) -> Self {
        CatchPanic(Box::pin(future))
    }
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll_caught(self.0.as_mut(), context)
    }
}

/// Polls a future whose panic is an error with the panic's message. It is not polled again after one, so nobody sees what the
/// panic left behind.
pub(crate) fn poll_caught<F: Future>(
    future: Pin<&mut F>,
    context: &mut Context<'_>,
) -> Poll<Result<F::Output, String>> {
    match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => Poll::Ready(Err(message(&*panic))),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// The clock of a store in memory: wall time that runs as evenly as the monotonic clock, and stands still in paused tests.
#[derive(Debug)]
pub(crate) struct MemoryClock {
    clock: Clock,
    began: Tick,
    began_wall: Millis,
}

impl Default for MemoryClock {
    fn default() -> Self {
        let clock = Clock::default();
        let wall = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        MemoryClock { began: clock.precise(), began_wall: Millis(0) + wall, clock }
    }
}

impl MemoryClock {
    pub(crate) fn now(&self) -> Millis {
        self.began_wall + self.clock.precise().since(self.began)
    }
}
