//! A call with extras: over all sides, to the dead-letter place, to the fallback.

use super::call_builder::Terms;
use super::ended::Ended;
use super::extras::{DeadLetterSink, Extras};
use super::{Inner, Settings};
use crate::error::{Error, Kind, View};
use crate::event::{EventKind, FallbackKind};
use crate::failover::{Failover, Side};
use crate::fallback::{Answer, BlockingFallback, Fallback, FallbackFilter, is_given_up};
use crate::fault::{Fault, Ran};

/// Runs the operation of a call that blocks through one guard.
pub(crate) trait BlockingExecutor<T, E> {
    const VIEW: View<E>;

    fn execute<'g>(&mut self, guard: &'g Inner, terms: Terms<'g>) -> Ended<T, E>;
}

/// What a call knows that does not depend on its types.
pub(super) struct Route<'g> {
    guard: &'g Inner,
    /// Read before the call, so that a change of settings never meets it halfway.
    settings: &'g Settings,
    terms: Terms<'g>,
    failover: Option<&'g Failover>,
    log: crate::failover::Diary<'g>,
}

/// A failure, with the answer that was judged one if there is one.
pub(super) struct Failure<T, E> {
    pub(super) error: Error<E>,
    pub(super) answer: Option<(T, Fault)>,
}

/// Where a call has come to after one side.
pub(super) enum Step<T, E> {
    Done(T),
    /// The next side may know better.
    Next(Error<E>),
    Failed(Failure<T, E>),
}

impl<'g> Route<'g> {
    pub(super) fn new(guard: &'g Inner, terms: Terms<'g>, failover: Option<&'g Failover>) -> Self {
        let log = failover.map_or_else(crate::failover::Diary::none, Failover::diary);
        Route { guard, settings: guard.settings.newest(), terms, failover, log }
    }

    /// The call begins: its time runs from here.
    pub(super) fn begin(&mut self) {
        if let Some(failover) = self.failover {
            self.log = failover.diary();
            if let Some(timeout) = failover.timeout() {
                self.terms.deadline = self.terms.deadline.min(self.guard.clock.precise() + timeout);
            }
        }
    }

    /// The guard and the terms of one side.
    pub(super) fn side(&self, side: Side) -> (&'g Inner, Terms<'g>) {
        let Some(failover) = self.failover else { return (self.guard, self.terms) };
        let guard = failover.inner(side);
        let mut terms = self.terms.on_side(side, self.guard, guard);
        // Whoever has somebody else to ask does not wait and ask again.
        terms.single |= !failover.is_last(side) && !failover.retries_each_side();
        (guard, terms)
    }

    /// Whose sides its hedges ask.
    #[cfg(feature = "tokio")]
    pub(super) fn failover(&self) -> Option<&'g Failover> {
        self.failover
    }

    /// What follows from how the call through one side ended.
    pub(super) fn after<T, E>(
        &self,
        side: Side,
        ended: Ended<T, E>,
        previous: Option<Error<E>>,
        view: View<E>,
    ) -> Step<T, E> {
        let (mut error, answer) = match ended {
            Ended::Good(value) => {
                self.log.answered(side);
                return Step::Done(value);
            }
            Ended::Bad { value, fault, report } => {
                let error = Error::new(report, self.side(side).0.name.clone(), None, view);
                (error, Some((value, fault)))
            }
            Ended::Failed(error) => (error, None),
        };
        let next_may_know = self.failover.is_some_and(|failover| !failover.is_last(side))
            && self.is_worth_asking_the_next(&error);
        if let Some(previous) = previous {
            error = error.after(previous);
        }
        if next_may_know {
            self.log.switches(side, &error);
            return Step::Next(error);
        }
        if self.failover.is_some() && answer.is_none() {
            self.log.failed(side, &error);
        }
        Step::Failed(Failure { error, answer })
    }

    /// Whether the next side may know better: the fault is this side's, and neither the question's nor another caller's; asking
    /// twice is safe, and there is time.
    fn is_worth_asking_the_next<E>(&self, error: &Error<E>) -> bool {
        let safe = self.terms.may_run_twice() || error.ran() == Ran::No;
        let fault = error.last_fault();
        let helps = error.kind() == Kind::Rejected || (fault.is_transient() && fault.counts());
        safe && helps && self.guard.clock.precise() < self.terms.deadline
    }

    /// Whether a fallback stands in for a failure.
    pub(super) fn falls_back<E>(&self, when: Option<&FallbackFilter>, error: &Error<E>) -> bool {
        when.unwrap_or_else(|| self.settings.fallback_when()).covers(error)
    }

    /// A fallback has answered.
    pub(super) fn tell_fallback<E>(&self, error: &Error<E>, kind: FallbackKind, dead_lettered: bool) {
        let fault = error.last_fault();
        self.terms.teller(self.guard).tell(EventKind::Fallback { fault, kind, dead_lettered });
    }
}

/// What the call returns where nothing stands in: the peer's answer, judged as it was, or the error.
pub(super) fn unaided<T, E, F: Fallback<T, E>>(failure: Failure<T, E>, side: Side) -> Returned<T, E, F> {
    match failure.answer {
        Some((value, fault)) => Ok(F::output(Answer::judged(value, side, fault))),
        None => Err(failure.error),
    }
}

/// What a call with extras returns.
pub(super) type Returned<T, E, F> = Result<<F as Fallback<T, E>>::Output, Error<E>>;

/// Makes a call with extras of an operation that blocks.
pub(super) fn run<T, E, X, H, F, D>(
    mut route: Route<'_>,
    extras: Extras<'_, H, F, D>,
    mut executor: X,
) -> Returned<T, E, F>
where
    X: BlockingExecutor<T, E>,
    F: BlockingFallback<T, E>,
    D: DeadLetterSink<E>,
{
    route.begin();
    let mut previous = None;
    let mut side = Side::PRIMARY;
    let failure = loop {
        let (guard, terms) = route.side(side);
        let ended = executor.execute(guard, terms);
        match route.after(side, ended, previous.take(), X::VIEW) {
            Step::Done(value) => {
                extras.fallback.remember(&value);
                return Ok(F::output(Answer::real(value, side)));
            }
            Step::Next(error) => previous = Some(error),
            Step::Failed(failure) => break failure,
        }
        side = side.next();
    };
    let dead_lettered = D::KEEPS && is_given_up(&failure.error);
    if dead_lettered {
        extras.dead_letter.take(&failure.error);
    }
    if route.falls_back(extras.when.as_ref(), &failure.error)
        && let Some((value, kind)) = extras.fallback.value_now(&failure.error)
    {
        route.tell_fallback(&failure.error, kind, dead_lettered);
        return Ok(F::output(Answer::fallback(value, side, failure.error)));
    }
    unaided::<T, E, F>(failure, side)
}
