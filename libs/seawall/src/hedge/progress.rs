//! A call with hedges under way: the call itself, and beside it as many single attempts as have started. In a failover they
//! go to the next sides, each through the guard of its side.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::Hedger;
use crate::budget::{RetryBudget, Token};
use crate::clock::Tick;
use crate::error::Report;
use crate::event::EventKind;
use crate::failover::{Failover, Side};
use crate::fault::Judge;
use crate::guard::{Ended, Inner, Operation, Progress, Terms, Timer};

pin_project! {
    /// A call with hedges between polls. All attempts share the one operation that `poll_with` is given.
    pub(crate) struct HedgedProgress<'g, F, T, E> {
        #[pin]
        first: Progress<'g, F, T, E>,
        // What the first came to, if that was no good answer.
        kept: Option<Ended<T, E>>,
        hedges: Hedges<'g, F, T, E>,
        #[pin]
        timer: Timer,
    }
}

/// The attempts beside the first.
struct Hedges<'g, F, T, E> {
    guard: &'g Inner,
    terms: Terms<'g>,
    /// Whose sides the hedges ask, if there is one.
    failover: Option<&'g Failover>,
    /// None where the guard has no hedges or the call may not run twice.
    hedger: Option<&'g Hedger>,
    budget: Option<&'g RetryBudget>,
    began: Tick,
    /// When the next one starts; never, if there is none.
    next_at: Tick,
    started: u32,
    under_way: Vec<Pin<Box<Progress<'g, F, T, E>>>>,
    /// Over those that have ended.
    failed: Option<Report>,
}

impl<'g, F, T, E> HedgedProgress<'g, F, T, E> {
    /// `hedged`: whether the call asked for hedges. Without them it is the call alone.
    pub(crate) fn new(
        guard: &'g Inner,
        terms: Terms<'g>,
        hedged: bool,
        failover: Option<&'g Failover>,
    ) -> Self {
        let settings = guard.settings.newest();
        let hedger = settings.hedger.as_deref().filter(|_| hedged && terms.may_run_twice());
        let began = if hedger.is_some() { guard.clock.precise() } else { Tick::NEVER };
        let next_at = hedger.map_or(Tick::NEVER, |hedger| began + hedger.delay());
        // A hedge has what is left of the call's time, not a whole call timeout of its own.
        let deadline = settings.timeouts.call.map_or(Tick::NEVER, |timeout| began + timeout);
        let (first, beside) = if hedger.is_some() { terms.hedged(deadline) } else { (terms, terms) };
        HedgedProgress {
            first: Progress::new(guard, first),
            kept: None,
            hedges: Hedges {
                guard,
                terms: beside,
                failover,
                hedger,
                budget: settings.budget.as_deref(),
                began,
                next_at,
                started: 0,
                under_way: Vec::new(),
                failed: None,
            },
            timer: Timer::new(),
        }
    }
}

impl<F, T, E> HedgedProgress<'_, F, T, E>
where
    F: Future<Output = Result<T, E>>,
{
    /// Goes on with the call and its hedges. The first good answer wins. Says which side gave it; otherwise the side that
    /// was asked first.
    pub(crate) fn poll_with<O, J, K>(
        self: Pin<&mut Self>,
        operation: &mut O,
        judge: &J,
        cx: &mut Context<'_>,
    ) -> Poll<(Side, Ended<T, E>)>
    where
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
        let mut this = self.project();
        let hedges = this.hedges;
        let asked = hedges.terms.side;
        if this.kept.is_none()
            && let Poll::Ready(ended) = this.first.as_mut().poll_with(operation, judge, cx)
        {
            if matches!(ended, Ended::Good(_)) {
                hedges.supersede();
                hedges.learn();
                return Poll::Ready((asked, ended));
            }
            *this.kept = Some(ended);
        }
        while this.kept.is_none()
            && hedges.next_at != Tick::NEVER
            && this.timer.as_mut().poll_until(hedges.next_at, &hedges.guard.clock, cx).is_ready()
        {
            hedges.start_next();
        }
        if let Some((side, value)) = hedges.poll_all(operation, judge, cx) {
            this.first.as_mut().answered_by_hedge(hedges.started, side);
            hedges.supersede();
            hedges.learn();
            return Poll::Ready((side, Ended::Good(value)));
        }
        if !hedges.under_way.is_empty() {
            return Poll::Pending;
        }
        let Some(kept) = this.kept.take() else { return Poll::Pending };
        let ended = hedges.over_all(kept);
        if hedges.hedger.is_some()
            && let Ended::Bad { report, .. } | Ended::Failed(crate::Error { report, .. }) = &ended
        {
            this.first.as_mut().not_answered_by_hedge(*report);
        }
        Poll::Ready((asked, ended))
    }
}

impl<'g, F, T, E> Hedges<'g, F, T, E> {
    /// The time of the next hedge has come: it starts, if the budget allows it. A budget that is spent now is not asked again
    /// for this call.
    fn start_next(&mut self) {
        let Some(hedger) = self.hedger else { return };
        let now = self.next_at.max(self.guard.clock.now());
        match self.budget.map(|budget| budget.try_spend_at(now)) {
            Some(None) => {
                self.next_at = Tick::NEVER;
                return;
            }
            token => token.flatten().into_iter().for_each(Token::spend),
        }
        self.started += 1;
        hedger.has_started();
        self.terms.teller(self.guard).tell(EventKind::Hedged);
        let (guard, terms) = self.target(self.started);
        self.under_way.push(Box::pin(Progress::new(guard, terms)));
        let more = self.started < hedger.max_hedges();
        self.next_at = if more { self.next_at + hedger.delay() } else { Tick::NEVER };
    }

    /// Whom the hedge of this number asks, and on what terms.
    fn target(&self, hedge: u32) -> (&'g Inner, Terms<'g>) {
        let terms = self.terms.numbered(hedge);
        let Some(failover) = self.failover else { return (self.guard, terms) };
        let side = failover.side_of_hedge(terms.side, hedge);
        let guard = failover.inner(side);
        (guard, terms.on_side(side, self.guard, guard))
    }

    /// Goes on with every hedge under way. A good answer, if one has it, and its side.
    fn poll_all<O, J, K>(&mut self, operation: &mut O, judge: &J, cx: &mut Context<'_>) -> Option<(Side, T)>
    where
        F: Future<Output = Result<T, E>>,
        O: Operation<Output = T, Error = E, Future = F>,
        J: Judge<T, E, K>,
    {
        let mut index = 0;
        while index < self.under_way.len() {
            let report = match self.under_way[index].as_mut().poll_with(operation, judge, cx) {
                Poll::Pending => {
                    index += 1;
                    continue;
                }
                Poll::Ready(Ended::Good(value)) => {
                    let side = self.under_way.swap_remove(index).side();
                    self.hedger.into_iter().for_each(Hedger::has_won);
                    return Some((side, value));
                }
                Poll::Ready(Ended::Bad { report, .. }) => report,
                Poll::Ready(Ended::Failed(error)) => error.report,
            };
            drop(self.under_way.swap_remove(index));
            self.failed = Some(match self.failed {
                Some(failed) => over_both(failed, report),
                None => report,
            });
        }
        None
    }

    /// An answer is there: those under way are of no use any more, and no fault of the peer.
    fn supersede(&mut self) {
        self.under_way.drain(..).for_each(|mut hedge| hedge.as_mut().supersede());
    }

    fn learn(&self) {
        if let Some(hedger) = self.hedger {
            hedger.learn(self.guard.clock.precise().since(self.began));
        }
    }

    /// The end of the first attempt, with what its hedges add to it.
    fn over_all(&self, mut ended: Ended<T, E>) -> Ended<T, E> {
        if let (Some(failed), Ended::Bad { report, .. } | Ended::Failed(crate::Error { report, .. })) =
            (self.failed, &mut ended)
        {
            *report = over_both(*report, failed);
        }
        ended
    }
}

/// The first report, with the attempts of both; of two answers to "did it run" the more doubtful one stands.
fn over_both(first: Report, second: Report) -> Report {
    Report { ran: first.ran.max(second.ran), attempts: first.attempts + second.attempts, ..first }
}
