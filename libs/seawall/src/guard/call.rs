//! The one future of the crate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::Operation;
use super::ambient::decided_below;
use super::decide::{Next, Run};
use super::request::Request;
use super::timer::Timer;
use crate::breaker::{OnPanic, Outcome};
use crate::clock::Tick;
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
        // For a turn or a place, or until `run.resume_at`.
        Queued,
        // By chaos, until `run.resume_at` or the deadline.
        Held,
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

impl<O: Operation, C> Call<'_, O, C> {
    /// Another call has answered in its place: what is under way is of no use any more, and no fault of the peer.
    pub(crate) fn supersede(self: Pin<&mut Self>) {
        let run = self.project().run;
        run.began = Tick::NEVER;
        run.settle_call(Outcome::Ignored);
    }

    /// Whether the answer that it returned was judged a fault.
    pub(crate) fn has_answered_badly(&self) -> bool {
        self.run.answered_badly
    }

    /// The second attempt beside it has not answered in its place.
    pub(crate) fn not_answered_by_hedge(self: Pin<&mut Self>) {
        self.project().run.not_answered_by_hedge();
    }

    /// The second attempt beside it has answered in its place.
    pub(crate) fn answered_by_hedge(mut self: Pin<&mut Self>) {
        self.as_mut().project().run.answered_by_hedge();
        self.supersede();
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
                StageProj::Running { .. } => None,
                StageProj::Start => Some(run.start_attempt()),
                StageProj::Queued => match run.poll_place(cx) {
                    Poll::Ready(next) => Some(next),
                    Poll::Pending => {
                        ready!(this.timer.as_mut().poll_until(run.resume_at, &run.guard.clock, cx));
                        Some(run.waited())
                    }
                },
                StageProj::Held => {
                    let at = run.suspended().min(run.resume_at);
                    ready!(this.timer.as_mut().poll_until(at, &run.guard.clock, cx));
                    Some(run.released(at))
                }
                StageProj::BackingOff => {
                    ready!(this.timer.as_mut().poll_until(run.resume_at, &run.guard.clock, cx));
                    run.resumed();
                    Some(run.start_attempt())
                }
                StageProj::Over => unreachable!("`Call` polled after it was over"),
            };
            let starting = match next {
                None => None,
                Some(Next::Start) => Some(run.attempt()),
                Some(next) => match Self::proceed(next, run, this.stage.as_mut(), this.last) {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => continue,
                },
            };

            let armed = OnPanic(&mut run.ticket);
            let (mut fault, mut ended_below) = (None, None);
            let polled = run.within.run(run.deadline, || {
                if let Some(attempt) = starting {
                    let future = this.operation.start(attempt);
                    this.stage.set(Stage::Running { future });
                }
                let StageProj::Running { future } = this.stage.as_mut().project() else {
                    unreachable!("it is running, or was started above")
                };
                let polled = future.poll(cx);
                // Judged in here, where the verdict of a guard further in can be seen.
                if let Poll::Ready(result) = &polled {
                    fault = this.classify.classify(result);
                    if let Some(fault) = fault {
                        // Only if the classifier took over what was decided there.
                        ended_below = decided_below()
                            .filter(|below| below.fault == fault)
                            .and_then(|below| below.deadline);
                    }
                }
                polled
            });
            armed.disarm();

            let next = match polled {
                Poll::Ready(Ok(value)) if fault.is_none() => {
                    run.succeeded();
                    this.stage.set(Stage::Over);
                    return Poll::Ready(Ok(value));
                }
                Poll::Ready(result) => {
                    this.stage.set(Stage::Over);
                    let next = run.answered(fault, ended_below);
                    match result {
                        // An answer that is judged a fault is still the peer's answer: the caller gets it.
                        Ok(value) if next == Next::GiveUp => {
                            run.answered_after_all();
                            return Poll::Ready(Ok(value));
                        }
                        Ok(_) => *this.last = None,
                        Err(error) => *this.last = Some(error),
                    }
                    next
                }
                Poll::Pending => {
                    let at = run.suspended();
                    ready!(this.timer.as_mut().poll_until(at, &run.guard.clock, cx));
                    // The attempt is dropped before anybody is told that it ran out of time.
                    this.stage.set(Stage::Over);
                    run.expired(at)
                }
            };
            if let Some(error) = Self::proceed(next, run, this.stage.as_mut(), this.last) {
                return Poll::Ready(Err(error));
            }
        }
    }
}

impl<O: Operation, C> Call<'_, O, C> {
    /// Does what was decided; an error ends the call.
    #[cold]
    fn proceed(
        next: Next,
        run: &mut Run<'_>,
        mut stage: Pin<&mut Stage<O::Future>>,
        last: &mut Option<O::Error>,
    ) -> Option<Error<O::Error>> {
        stage.set(match next {
            Next::Start | Next::Again => Stage::Start,
            Next::Queue => Stage::Queued,
            Next::Hold => Stage::Held,
            Next::Wait => Stage::BackingOff,
            Next::GiveUp => Stage::Over,
        });
        (next == Next::GiveUp).then(|| Error { report: run.final_report(), last: last.take() })
    }
}

impl<O: Operation, C> fmt::Debug for Call<'_, O, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("guard", &self.run.guard.watch.name).finish_non_exhaustive()
    }
}
