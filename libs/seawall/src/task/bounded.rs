//! Work that ends: within its time, and with its panics caught.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use super::failure::SharedWorkError;
use crate::clock::Clock;
use crate::guard::Timer;
use crate::guard::ambient::alone;

/// Runs `work` until it is done, panics, or has taken longer than `limit`.
pub(super) async fn bounded<F, Fut>(
    work: F,
    limit: Duration,
    clock: &Clock,
) -> Result<Fut::Output, SharedWorkError>
where
    F: FnOnce() -> Fut,
    Fut: Future,
{
    let deadline = clock.precise() + limit;
    // In here, so that a panic of the closure itself is caught with those of its future.
    let mut work = pin!(async { work().await });
    let mut timer = pin!(Timer::new());
    poll_fn(|cx| {
        // What is left behind by a panic is dropped and never polled again.
        match catch_unwind(AssertUnwindSafe(|| alone(|| work.as_mut().poll(cx)))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
            Err(panic) => Poll::Ready(Err(SharedWorkError::Panicked(message_of(&*panic)))),
            Ok(Poll::Pending) => {
                ready!(timer.as_mut().poll_until(deadline, clock, cx));
                Poll::Ready(Err(SharedWorkError::TimedOut(limit)))
            }
        }
    })
    .await
}

/// What a panic said.
pub(super) fn message_of(panic: &(dyn Any + Send)) -> Arc<str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").into()
}
