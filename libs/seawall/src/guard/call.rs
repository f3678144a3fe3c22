//! The one future of the crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::decide::{Next, Run};
use super::request::Request;
use super::timer::Timer;
use super::Operation;
use crate::breaker::Ticket;
use crate::error::Error;
use crate::fault::Classify;

pin_project! {
    /// A guarded call: call timeout, retry, breaker and attempt timeout in one state machine.
    ///
    /// Dropping it at any point is safe: permits, probes and budget tokens go back by being dropped with it.
    #[must_use = "futures do nothing unless polled"]
    pub struct Call<'g, O: Operation, C> {
        operation: O,
        classify: C,
        run: Run<'g>,
        // The operation's own error of the last attempt that ended by itself.
        last: Option<O::Error>,
        #[pin]
        stage: Stage<O::Future>,
        #[pin]
        timer: Timer,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<F> {
        // The next attempt is to be started.
        Start,
        Running { #[pin] future: F },
        // Until `run.resume_at`.
        BackingOff,
        Over,
    }
}

impl<'g, O: Operation, C> Call<'g, O, C> {
    #[inline]
    pub(super) fn new(request: Request<'g, C>, operation: O) -> Self {
        Call {
            operation,
            classify: request.classify,
            run: Run::new(request.guard, request.terms),
            last: None,
            stage: Stage::Start,
            timer: Timer::new(),
        }
    }
}

impl<O, C> Future for Call<'_, O, C>
where
    O: Operation,
    C: Classify<O::Output, O::Error>,
{
    type Output = Result<O::Output, Error<O::Error>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let run = this.run;
        loop {
            let next = match this.stage.as_mut().project() {
                StageProj::Start => match run.start_attempt() {
                    Ok(attempt) => {
                        let armed = OnPanic(&mut run.ticket);
                        let future = run.frame.run(|| this.operation.start(attempt));
                        armed.disarm();
                        this.stage.set(Stage::Running { future });
                        continue;
                    }
                    Err(next) => next,
                },
                StageProj::Running { future } => {
                    let armed = OnPanic(&mut run.ticket);
                    let polled = run.frame.run(|| {
                        // Judged within the frame, where the verdict of a guard further in can be seen.
                        future.poll(cx).map(|result| (this.classify.classify(&result), result))
                    });
                    armed.disarm();
                    match polled {
                        Poll::Ready((None, Ok(value))) => {
                            run.succeeded();
                            this.stage.set(Stage::Over);
                            return Poll::Ready(Ok(value));
                        }
                        Poll::Ready((fault, result)) => {
                            this.stage.set(Stage::Over);
                            let next = run.answered(fault);
                            match result {
                                // An answer that is judged a fault is still the peer's answer: the caller gets it.
                                Ok(value) if matches!(next, Next::GiveUp(_)) => return Poll::Ready(Ok(value)),
                                Ok(_) => *this.last = None,
                                Err(error) => *this.last = Some(error),
                            }
                            next
                        }
                        Poll::Pending => {
                            let at = run.suspended();
                            ready!(this.timer.as_mut().poll_until(at, &run.guard.clock, cx));
                            this.stage.set(Stage::Over);
                            run.expired(at)
                        }
                    }
                }
                StageProj::BackingOff => {
                    ready!(this.timer.as_mut().poll_until(run.resume_at, &run.guard.clock, cx));
                    run.resumed();
                    this.stage.set(Stage::Start);
                    continue;
                }
                StageProj::Over => unreachable!("`Call` polled after it was over"),
            };
            match next {
                Next::Again => this.stage.set(Stage::Start),
                Next::Wait => this.stage.set(Stage::BackingOff),
                Next::GiveUp(report) => {
                    this.stage.set(Stage::Over);
                    return Poll::Ready(Err(Error { report, last: this.last.take() }));
                }
            }
        }
    }
}

/// Tells the breaker of a panic that unwinds through here. Looking at `thread::panicking` in the ticket's drop
/// would also blame the operation for a panic elsewhere in its task.
struct OnPanic<'a, 'g>(&'a mut Option<Ticket<'g>>);

impl OnPanic<'_, '_> {
    #[inline]
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for OnPanic<'_, '_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.0.take() {
            ticket.panicked();
        }
    }
}

impl<O: Operation, C> fmt::Debug for Call<'_, O, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("guard", &self.run.guard.name).finish_non_exhaustive()
    }
}
