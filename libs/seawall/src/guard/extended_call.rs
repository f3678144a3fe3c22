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
use crate::failover::Side;
use crate::fallback::{Answer, Fallback, FallbackFilter, is_given_up};
use crate::fault::Judge;
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
        previous: Option<crate::Error<O::Error>>,
        // Why the call failed and whether that was kept as a dead letter, while its fallback is at work.
        failure: Option<(Failure<O::Output, O::Error>, bool)>,
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
                    let progress = HedgedProgress::new(guard, terms, *this.hedged);
                    this.stage.set(Stage::Calling { progress });
                    continue;
                }
                StageProj::Calling { progress } => {
                    let ended = ready!(progress.poll_with(this.operation, this.judge, cx));
                    match this.route.after(*this.side, ended, this.previous.take(), J::view) {
                        Step::Done(value) => {
                            this.fallback.iter().for_each(|fallback| fallback.remember(&value));
                            return Poll::Ready(Ok(F::output(Answer::real(value, *this.side))));
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
                    let (failure, dead_lettered) = this.failure.as_ref().expect("it failed before");
                    let value = ready!(F::poll_value(work, &failure.error, cx));
                    if let Some((_, kind)) = &value {
                        this.route.tell_fallback(&failure.error, *kind, *dead_lettered);
                    }
                    let (failure, _) = this.failure.take().expect("it is there");
                    return Poll::Ready(match value {
                        Some((value, _)) => Ok(F::output(Answer::fallback(value, *this.side, failure.error))),
                        None => unaided::<_, _, F>(failure, *this.side),
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
            let work = fallback.begin(&failure.error);
            *this.failure = Some((failure, dead_lettered));
            this.stage.set(Stage::FallingBack { work });
        }
    }
}

impl<O: Operation, J, K, F, D, W> fmt::Debug for ExtendedCall<'_, O, J, K, F, D, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtendedCall").field("side", &self.side).finish_non_exhaustive()
    }
}
