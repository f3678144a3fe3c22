//! The operation that every row guards: the same future for everybody, opaque to the optimizer.

use std::future::Future;
use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What the operation does when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Succeeds on its first poll.
    Ready,
    /// Returns `Pending` once, after waking its own task, and succeeds on its second poll.
    Suspending,
    /// Fails on its first poll. Opens the breakers of the rejection rows; never measured by itself.
    Failing,
}

/// The two kinds that are measured.
pub const MEASURED: [Kind; 2] = [Kind::Ready, Kind::Suspending];

/// What a call of the operation gives.
pub type Answer = io::Result<u64>;

/// Starts the operation.
pub fn op(kind: Kind) -> Operation {
    Operation { kind, value: 42 }
}

/// The same for a blocking caller, ready at once. Never inlined, as the future's poll.
#[inline(never)]
pub fn blocking_op() -> Answer {
    Ok(black_box(42))
}

/// The future of [`op`].
pub struct Operation {
    kind: Kind,
    value: u64,
}

impl Future for Operation {
    type Output = Answer;

    // Never inlined: a guard can't see through the operation that it guards, and all rows, the bare one included, pay the
    // same for the call.
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        match self.kind {
            Kind::Ready => Poll::Ready(Ok(black_box(self.value))),
            Kind::Suspending => {
                self.kind = Kind::Ready;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Kind::Failing => Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into())),
        }
    }
}
