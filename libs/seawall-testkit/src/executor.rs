//! Running a future without a runtime.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::ManualClock;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs a future to its end, moving `clock` to the next timer whenever nothing else can happen.
///
/// # Panics
/// If the future waits for something that neither wakes it nor is a timer: it would wait for ever.
#[expect(clippy::panic, reason = "a test that would hang should fail")]
pub fn run<F: Future>(clock: &ManualClock, future: F) -> F::Output {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(flag.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        if !flag.0.swap(false, Ordering::AcqRel) && !clock.advance_to_next() {
            panic!("the future waits for something that nobody will do");
        }
    }
}

/// Polls once, with a waker that does nothing.
pub fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a future at most `polls` times, each time that it is woken, and drops it; `None` if it has not ended then.
///
/// With `polls` = 0, 1, 2, … a test cancels an operation at every point where it can be cancelled.
pub async fn poll_at_most<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
