//! A call under way, apart from its operation: whoever polls it brings that along.
//!
//! The future of a plain call ([`Call`](super::Call)) has one of these and its operation; a call with hedges has several and
//! one operation that they share, without a lock and without a cell.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::call_builder::Terms;
use super::decide::{Next, Run};
use super::ended::{Ended, Last};
use super::timer::Timer;
use super::{Inner, Operation};
use crate::breaker::OnPanic;
use crate::clock::Tick;
use crate::error::Report;
use crate::failover::Side;
use crate::fault::Judge;

pin_project! {
    /// A call between polls. Dropping it at any point is safe: permits, probes and budget tokens go back by being dropped
    /// with it.
    pub(crate) struct Progress<'g, F, T, E> {
        run: Run<'g>,
        // What the last attempt that ended by itself left, if that was no good answer.
        last: Last<T, E>,
        #[pin]
        stage: Stage<F>,
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

impl<'g, F, T, E> Progress<'g, F, T, E> {
    #[inline]
    pub(crate) fn new(guard: &'g Inner, terms: Terms<'g>) -> Self {
        Progress { run: Run::new(guard, terms), last: None, stage: Stage::Start, timer: Timer::new() }
    }

    /// Another attempt has answered in its place: what is under way is of no use any more, and no fault of the peer.
    pub(crate) fn supersede(self: Pin<&mut Self>) {
        let run = self.project().run;
        run.began = Tick::NEVER;
        if let Some(ticket) = run.ticket.take() {
            ticket.supersede();
        }
    }

    /// The side that it asks.
    pub(crate) fn side(&self) -> Side {
        self.run.terms.side
    }

    /// No hedge has answered in its place: it ended as it did, over all of them as `report` says.
    pub(crate) fn not_answered_by_hedge(self: Pin<&mut Self>, report: Report) {
        self.project().run.not_answered_by_hedge(&report);
    }

    /// A hedge has answered in its place, after so many attempts of all hedges. One that asked the same side speaks for it; one
    /// that asked another side does not, and whoever is overtaken by others again and again may be hanging.
    pub(crate) fn answered_by_hedge(mut self: Pin<&mut Self>, attempts: u32, by: Side) {
        let run = self.as_mut().project().run;
        run.answered_by_hedge(attempts);
        if by != run.terms.side
            && let Some(ticket) = run.ticket.take()
        {
            ticket.cut_short();
        }
        self.supersede();
    }
}

impl<F, T, E> Progress<'_, F, T, E>
where
    F: Future<Output = Result<T, E>>,
{
    /// Goes on with the call.
    #[inline(always)]
    pub(crate) fn poll_with<O, J, K>(
        self: Pin<&mut Self>,
        operation: &mut O,
        judge: &J,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<T, E>>
    where
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
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
                StageProj::Over => unreachable!("a call was polled after it was over"),
            };
            let starting = match next {
                None => None,
                Some(Next::Start) => {
                    this.last.take_if(|last| last.is_ok());
                    Some(run.attempt())
                }
                Some(next) => match proceed::<T, E, J, K, F>(next, run, this.stage.as_mut(), this.last) {
                    Some(ended) => return Poll::Ready(ended),
                    None => continue,
                },
            };

            let armed = OnPanic(&mut run.ticket);
            let in_span = run.span.enter();
            let polled = run.within.run(run.deadline, || {
                if let Some(attempt) = starting {
                    let future = operation.start(attempt);
                    this.stage.set(Stage::Running { future });
                }
                let StageProj::Running { future } = this.stage.as_mut().project() else {
                    unreachable!("it is running, or was started above")
                };
                future.poll(cx)
            });
            drop(in_span);
            let fault = match &polled {
                Poll::Ready(result) => judge.judge(result),
                Poll::Pending => None,
            };
            armed.disarm();

            let next = match polled {
                Poll::Ready(Ok(value)) if fault.is_none() => {
                    run.succeeded();
                    this.stage.set(Stage::Over);
                    return Poll::Ready(Ended::Good(value));
                }
                Poll::Ready(result) => {
                    this.stage.set(Stage::Over);
                    run.judged::<T, E, J, K>(result, fault, this.last)
                }
                Poll::Pending => {
                    let at = run.suspended();
                    ready!(this.timer.as_mut().poll_until(at, &run.guard.clock, cx));
                    // The attempt is dropped before anybody is told that it ran out of time.
                    let in_span = run.span.enter();
                    this.stage.set(Stage::Over);
                    drop(in_span);
                    run.expired(at)
                }
            };
            if let Some(ended) = proceed::<T, E, J, K, F>(next, run, this.stage.as_mut(), this.last) {
                return Poll::Ready(ended);
            }
        }
    }
}

/// Does what was decided; an end ends the call.
#[cold]
fn proceed<T, E, J: Judge<T, E, K>, K, F>(
    next: Next,
    run: &Run<'_>,
    mut stage: Pin<&mut Stage<F>>,
    last: &mut Last<T, E>,
) -> Option<Ended<T, E>> {
    stage.set(match next {
        Next::Start | Next::Again => Stage::Start,
        Next::Queue => Stage::Queued,
        Next::Hold => Stage::Held,
        Next::Wait => Stage::BackingOff,
        Next::GiveUp => Stage::Over,
    });
    (next == Next::GiveUp).then(|| run.given_up::<T, E, J, K>(last.take()))
}
