//! Where a call stands between two polls, and how it gets from one place to the next.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::decide::{Next, Run};
use super::ended::{Ended, Last};
use super::rare::enter_span;
use super::timer::Timer;
use crate::breaker::OnPanic;
use crate::fault::{Fault, Judge};

pin_project! {
    /// Where a call stands between two polls.
    #[project = StageProj]
    pub(super) enum Stage<F> {
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

/// Whether the time has come for what the call waits for, and what it does then; `None` while an attempt is running.
pub(super) fn poll_due<F>(
    run: &mut Run<'_>,
    stage: Pin<&mut Stage<F>>,
    timer: Pin<&mut Timer>,
    cx: &mut Context<'_>,
) -> Poll<Option<Next>> {
    Poll::Ready(Some(match stage.project() {
        StageProj::Running { .. } => return Poll::Ready(None),
        StageProj::Start => run.start_attempt(),
        StageProj::Queued => match run.poll_place(cx) {
            Poll::Ready(next) => next,
            Poll::Pending => {
                ready!(timer.poll_until(run.resume_at, &run.guard.clock, cx));
                run.waited()
            }
        },
        StageProj::Held => {
            let at = run.suspended().min(run.resume_at);
            ready!(timer.poll_until(at, &run.guard.clock, cx));
            run.released(at)
        }
        StageProj::BackingOff => {
            ready!(timer.poll_until(run.resume_at, &run.guard.clock, cx));
            run.resumed();
            run.start_attempt()
        }
        StageProj::Over => unreachable!("a call was polled after it was over"),
    }))
}

#[inline(always)]
pub(super) fn poll_attempt<F: Future>(stage: Pin<&mut Stage<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let StageProj::Running { future } = stage.project() else { unreachable!("it was started before") };
    future.poll(cx)
}

/// Polls an attempt within its context and its span, and judges what it has come to.
pub(super) fn poll_judged<T, E, J, K>(
    run: &mut Run<'_>,
    judge: &J,
    poll: impl FnOnce() -> Poll<Result<T, E>>,
) -> (Poll<Result<T, E>>, Option<Fault>)
where
    J: Judge<T, E, K>,
{
    let armed = OnPanic(&mut run.ticket);
    let in_span = enter_span(&run.rare);
    let polled = run.within.run(run.deadline, poll);
    drop(in_span);
    let fault = judged(judge, &polled);
    armed.disarm();
    (polled, fault)
}

#[inline(always)]
pub(super) fn judged<T, E, J, K>(judge: &J, polled: &Poll<Result<T, E>>) -> Option<Fault>
where
    J: Judge<T, E, K>,
{
    match polled {
        Poll::Ready(result) => judge.judge(result),
        Poll::Pending => None,
    }
}

/// Does what was decided; an end ends the call.
#[cold]
pub(super) fn proceed<T, E, J: Judge<T, E, K>, K, F>(
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
