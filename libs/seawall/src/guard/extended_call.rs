//! The future of a call with extras.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::Operation;
use super::extended::{Failure, Returned, Route, Step, unaided};
use super::extras::sealed::HedgeMode;
use super::extras::{DeadLetterSink, Extras};
use crate::error::Error;
use crate::failover::Side;
use crate::fallback::{Answer, Fallback, FallbackFilter, is_given_up};
use crate::fault::{Fault, Judge};
use crate::hedge::HedgedProgress;

pin_project! {
    /// A guarded call with extras: over all sides, with hedges, to the dead-letter place, to the fallback.
    ///
    /// Dropping it at any point is safe: permits, probes and budget tokens go back by being dropped with it.
    ///
    /// `W` is the work of its fallback `F`. It stands here as a type of its own, because that a future is `Send` must follow
    /// from its fields alone: what follows from a trait, the compiler can't see where lifetimes are involved.
    #[must_use = "futures do nothing unless polled"]
    pub struct ExtendedCall<'g, O, J, K, F, D, W>
    where
        O: Operation,
    {
        operation: O,
        judge: J,
        route: Route<'g>,
        hedged: bool,
        when: Option<FallbackFilter>,
        fallback: Option<F>,
        dead_letter: Option<D>,
        side: Side,
        previous: Option<Error<O::Error>>,
        failure: Option<FailedCall<O::Output, O::Error>>,
        #[pin]
        stage: Stage<HedgedProgress<'g, O::Future, O::Output, O::Error>, W>,
        kind: PhantomData<fn() -> K>,
    }
}

pin_project! {
    #[project = StageProj]
    enum Stage<P, W> {
        // The next side is to be asked.
        Start,
        Calling { #[pin] progress: P },
        FallingBack { #[pin] work: W },
    }
}

/// Why the call failed, while its fallback is at work.
struct FailedCall<T, E> {
    /// The fallback may have taken it along.
    error: Option<Error<E>>,
    answer: Option<(T, Fault)>,
    /// Whether it was kept as a dead letter.
    dead_lettered: bool,
}

impl<'g, O: Operation, J, K, F, D, W> ExtendedCall<'g, O, J, K, F, D, W> {
    pub(super) fn new<H: HedgeMode>(
        route: Route<'g>,
        extras: Extras<'g, H, F, D>,
        judge: J,
        operation: O,
    ) -> Self {
        ExtendedCall {
            operation,
            judge,
            route,
            hedged: H::HEDGED,
            when: extras.when,
            fallback: Some(extras.fallback),
            dead_letter: Some(extras.dead_letter),
            side: Side::PRIMARY,
            previous: None,
            failure: None,
            stage: Stage::Start,
            kind: PhantomData,
        }
    }
}

impl<O, J, K, F, D, W> Future for ExtendedCall<'_, O, J, K, F, D, W>
where
    O: Operation,
    J: Judge<O::Output, O::Error, K>,
    F: Fallback<O::Output, O::Error, Work = W>,
    D: DeadLetterSink<O::Error>,
{
    type Output = Returned<O::Output, O::Error, F>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let failure = match this.stage.as_mut().project() {
                StageProj::Start => {
                    if *this.side == Side::PRIMARY {
                        this.route.begin();
                    }
                    let (guard, terms) = this.route.side(*this.side);
                    let progress = HedgedProgress::new(guard, terms, *this.hedged, this.route.failover());
                    this.stage.set(Stage::Calling { progress });
                    continue;
                }
                StageProj::Calling { progress } => {
                    let (side, ended) = ready!(progress.poll_with(this.operation, this.judge, cx));
                    *this.side = side;
                    match this.route.after(side, ended, this.previous.take(), J::view) {
                        Step::Done(value) => {
                            this.fallback.iter().for_each(|fallback| fallback.remember(&value));
                            return Poll::Ready(Ok(F::output(Answer::real(value, side))));
                        }
                        Step::Next(error) => {
                            *this.previous = Some(error);
                            *this.side = this.side.next();
                            this.stage.set(Stage::Start);
                            continue;
                        }
                        Step::Failed(failure) => failure,
                    }
                }
                StageProj::FallingBack { work } => {
                    let failed = this.failure.as_mut().expect("it failed before");
                    let value = ready!(F::poll_value(work, &mut failed.error, cx));
                    let FailedCall { error, answer, dead_lettered } =
                        this.failure.take().expect("it is there");
                    let error = error.expect("whoever had it has given it back");
                    return Poll::Ready(match value {
                        Some((value, kind)) => {
                            this.route.tell_fallback(&error, kind, dead_lettered);
                            Ok(F::output(Answer::fallback(value, *this.side, error)))
                        }
                        None => unaided::<_, _, F>(Failure { error, answer }, *this.side),
                    });
                }
            };
            let dead_lettered = D::KEEPS && is_given_up(&failure.error);
            if dead_lettered && let Some(sink) = this.dead_letter.take() {
                sink.take(&failure.error);
            }
            let covered = this.route.falls_back(this.when.as_ref(), &failure.error);
            let Some(fallback) = this.fallback.take().filter(|_| covered) else {
                return Poll::Ready(unaided::<_, _, F>(failure, *this.side));
            };
            let Failure { error, answer } = failure;
            let mut error = Some(error);
            let work = fallback.begin(&mut error);
            *this.failure = Some(FailedCall { error, answer, dead_lettered });
            this.stage.set(Stage::FallingBack { work });
        }
    }
}

impl<O: Operation, J, K, F, D, W> fmt::Debug for ExtendedCall<'_, O, J, K, F, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendedCall").field("side", &self.side).finish_non_exhaustive()
    }
}
