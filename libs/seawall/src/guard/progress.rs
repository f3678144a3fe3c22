//! A call under way, apart from its operation: whoever polls it brings that along.
//!
//! The future of a plain call ([`Call`](super::Call)) has one of these and its operation; a call with hedges has several and
//! one operation that they share, without a lock and without a cell.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::admission::{Admitted, ask_limits};
use super::beginning::{Beginning, attempt};
use super::call_builder::Terms;
use super::decide::{Next, Run};
use super::ended::{Ended, Last};
use super::opening::{Delay, Opening, first_attempt, held_up, refused_by_circuit, succeeded};
use super::rare::enter_span;
use super::stage::{Stage, StageProj, judged, poll_attempt, poll_due, poll_judged, proceed};
use super::timer::Timer;
use super::{Inner, Operation};
use crate::breaker::{OnPanic, Slot};
use crate::clock::Tick;
use crate::error::{Error, Report};
use crate::failover::Side;
use crate::fault::{Fault, Judge};

pin_project! {
    /// A call between polls. Dropping it at any point is safe: permits, probes and budget tokens go back by being dropped
    /// with it.
    pub(crate) struct Progress<'g, F, T, E> {
        #[pin]
        state: State<'g, T, E>,
        #[pin]
        stage: Stage<F>,
    }
}

pin_project! {
    /// What is remembered of the call: nothing, until its first attempt has turned out to be no plain success.
    #[project = StateProj]
    enum State<'g, T, E> {
        New { guard: &'g Inner, terms: Terms<'g> },
        Begun {
            run: Run<'g>,
            // What the last attempt that ended by itself left, if that was no good answer.
            last: Last<T, E>,
            #[pin]
            timer: Timer,
        },
    }
}

impl<'g, T, E> State<'g, T, E> {
    #[inline(always)]
    fn begun(run: Run<'g>) -> Self {
        State::Begun { run, last: None, timer: Timer::new() }
    }

    fn run(self: Pin<&mut Self>) -> Option<&mut Run<'g>> {
        match self.project() {
            StateProj::Begun { run, .. } => Some(run),
            StateProj::New { .. } => None,
        }
    }
}

/// What is known already when a call goes on.
enum Known<T, E> {
    Nothing,
    Decided(Next),
    /// What the attempt under way has come to, and how that was judged.
    Polled(Poll<Result<T, E>>, Option<Fault>),
}

impl<'g, F, T, E> Progress<'g, F, T, E> {
    #[inline]
    pub(crate) fn new(guard: &'g Inner, terms: Terms<'g>) -> Self {
        Progress { state: State::New { guard, terms }, stage: Stage::Start }
    }

    /// Another attempt has answered in its place: what is under way is of no use any more, and no fault of the peer.
    pub(crate) fn supersede(self: Pin<&mut Self>) {
        let Some(run) = self.project().state.run() else { return };
        run.began = Tick::NEVER;
        if let Some(ticket) = run.ticket.take() {
            ticket.supersede();
        }
    }

    /// The side that it asks.
    pub(crate) fn side(&self) -> Side {
        match &self.state {
            State::New { terms, .. } => terms.side,
            State::Begun { run, .. } => run.terms.side,
        }
    }

    /// No hedge has answered in its place: it ended as it did, over all of them as `report` says.
    pub(crate) fn not_answered_by_hedge(self: Pin<&mut Self>, report: Report) {
        if let Some(run) = self.project().state.run() {
            run.not_answered_by_hedge(&report);
        }
    }

    /// A hedge has answered in its place, after so many attempts of all hedges. One that asked the same side speaks for it; one
    /// that asked another side does not, and whoever is overtaken by others again and again may be hanging.
    pub(crate) fn answered_by_hedge(mut self: Pin<&mut Self>, attempts: u32, by: Side) {
        let Some(run) = self.as_mut().project().state.run() else { return };
        run.answered_by_hedge(attempts);
        if by != run.terms.side
            && let Some(ticket) = run.ticket.take()
        {
            ticket.cut_short();
        }
        self.supersede();
    }
}

impl<'g, F, T, E> Progress<'g, F, T, E>
where
    F: Future<Output = Result<T, E>>,
{
    /// Goes on with the call.
    #[inline(always)]
    pub(crate) fn poll_with<O, J, K>(
        mut self: Pin<&mut Self>,
        operation: &mut O,
        judge: &J,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<T, E>>
    where
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
        let mut this = self.as_mut().project();
        let StateProj::New { guard, terms } = this.state.as_mut().project() else {
            return self.go_on(Known::Nothing, operation, judge, cx);
        };
        let StageProj::Start = this.stage.as_mut().project() else {
            unreachable!("a call was polled after it was over, or after its operation had panicked")
        };
        let guard = *guard;
        if guard.watch.is_on() || guard.watch.has_spans() {
            return self.delayed(Delay::Unusual, operation, judge, cx);
        }
        let begin = Beginning::read(guard, terms, false);
        let settings = begin.settings;
        if begin.is_too_late() || settings.chaos.is_some() {
            return self.delayed(Delay::Unusual, operation, judge, cx);
        }
        let mut ticket = Slot::EMPTY;
        if let Some(breaker) = &settings.breaker {
            match breaker.admit_untimed() {
                Ok(admitted) => ticket.put(admitted),
                Err(refused) => {
                    let delay = refused_by_circuit(guard, terms, &begin, refused);
                    if let Delay::Refused(report) = delay {
                        this.stage.set(Stage::Over);
                        let error = Error::new(report, guard.name.clone(), None, J::view);
                        return Poll::Ready(Ended::Failed(error));
                    }
                    return self.delayed(delay, operation, judge, cx);
                }
            }
        }
        let mut permit = None;
        if settings.limited {
            match ask_limits(settings) {
                Ok(Admitted(admitted)) => permit = admitted,
                Err(obstacle) => {
                    let delay = held_up(guard, terms, &begin, ticket, obstacle);
                    return self.delayed(delay, operation, judge, cx);
                }
            }
        }
        let (mut within, attempt_deadline, deadline) = first_attempt(guard, terms, &begin, &mut ticket);
        let attempt = attempt(guard, terms, 1, begin.around, deadline, begin.now);
        let armed = OnPanic(&mut ticket);
        let polled = within.run(deadline, || {
            this.stage.set(Stage::Running { future: operation.start(attempt) });
            poll_attempt(this.stage.as_mut(), cx)
        });
        let fault = judged(judge, &polled);
        armed.disarm();
        match polled {
            Poll::Ready(Ok(value)) if fault.is_none() => {
                succeeded(guard, terms, &begin, &mut ticket, permit);
                this.stage.set(Stage::Over);
                Poll::Ready(Ended::Good(value))
            }
            polled => {
                let opening = Opening { begin, within, attempt_deadline, deadline, ticket, permit };
                let run = Run::opened(guard, *terms, opening);
                this.state.set(State::begun(run));
                self.go_on(Known::Polled(polled, fault), operation, judge, cx)
            }
        }
    }

    /// The first attempt does not start at once.
    #[cold]
    #[inline(never)]
    fn delayed<O, J, K>(
        mut self: Pin<&mut Self>,
        delay: Delay<'g>,
        operation: &mut O,
        judge: &J,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<T, E>>
    where
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
        let mut this = self.as_mut().project();
        let StateProj::New { guard, terms } = this.state.as_mut().project() else {
            unreachable!("the call has not begun")
        };
        if let Delay::Refused(report) = delay {
            this.stage.set(Stage::Over);
            return Poll::Ready(Ended::Failed(Error::new(report, guard.name.clone(), None, J::view)));
        }
        let mut run = Run::new(guard, *terms);
        let next = delay.go_on(&mut run);
        this.state.set(State::begun(run));
        self.go_on(Known::Decided(next), operation, judge, cx)
    }

    /// The long way: everything but a first attempt that is let through at once and answers at once.
    #[inline(never)]
    fn go_on<O, J, K>(
        self: Pin<&mut Self>,
        mut known: Known<T, E>,
        operation: &mut O,
        judge: &J,
        cx: &mut Context<'_>,
    ) -> Poll<Ended<T, E>>
    where
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
        let mut this = self.project();
        let StateProj::Begun { run, last, mut timer } = this.state.project() else {
            unreachable!("the call has begun")
        };
        loop {
            let (polled, fault) = match std::mem::replace(&mut known, Known::Nothing) {
                Known::Polled(polled, fault) => (polled, fault),
                Known::Decided(Next::Start) => {
                    last.take_if(|last| last.is_ok());
                    let attempt = run.attempt();
                    poll_judged(run, judge, || {
                        this.stage.set(Stage::Running { future: operation.start(attempt) });
                        poll_attempt(this.stage.as_mut(), cx)
                    })
                }
                Known::Decided(next) => {
                    match proceed::<T, E, J, K, F>(next, run, this.stage.as_mut(), last) {
                        Some(ended) => return Poll::Ready(ended),
                        None => continue,
                    }
                }
                Known::Nothing => match ready!(poll_due(run, this.stage.as_mut(), timer.as_mut(), cx)) {
                    Some(next) => {
                        known = Known::Decided(next);
                        continue;
                    }
                    None => poll_judged(run, judge, || poll_attempt(this.stage.as_mut(), cx)),
                },
            };
            let next = match polled {
                Poll::Ready(Ok(value)) if fault.is_none() => {
                    run.succeeded();
                    this.stage.set(Stage::Over);
                    return Poll::Ready(Ended::Good(value));
                }
                Poll::Ready(result) => {
                    this.stage.set(Stage::Over);
                    run.judged::<T, E, J, K>(result, fault, last)
                }
                Poll::Pending => {
                    let at = run.suspended();
                    ready!(timer.as_mut().poll_until(at, &run.guard.clock, cx));
                    if run.oversleeps(at) {
                        continue;
                    }
                    // The attempt is dropped before anybody is told that it ran out of time.
                    let in_span = enter_span(&run.rare);
                    this.stage.set(Stage::Over);
                    drop(in_span);
                    run.expired(at)
                }
            };
            known = Known::Decided(next);
        }
    }
}
