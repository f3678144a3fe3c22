//! A call with a second attempt.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::config::{Delay, Hedge, SAMPLES_MIN};
use super::machine::{BUCKETS, bucket_of, longest_of, percentile};
use crate::clock::Tick;
use crate::config::ConfigError;
use crate::error::Error;
use crate::event::What;
use crate::fault::Classify;
use crate::guard::{Attempt, Request, Timer};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::versions::Versions;

/// When second attempts start, and how often they did and won.
pub struct Hedger {
    hedge: Versions<Hedge>,
    /// Of the recent answers.
    counts: [AtomicU32; BUCKETS],
    answers: AtomicU64,
    started: AtomicU64,
    won: AtomicU64,
}

/// After so many answers old ones weigh half, so that what is remembered is recent.
const FORGET_AT: u64 = 4_096;

impl Hedger {
    pub(crate) fn new(hedge: Hedge) -> Self {
        Hedger {
            hedge: Versions::new(hedge),
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
            answers: AtomicU64::new(0),
            started: AtomicU64::new(0),
            won: AtomicU64::new(0),
        }
    }

    /// The delay that a call would get now.
    #[must_use]
    pub fn delay(&self) -> Duration {
        match self.hedge.newest().delay {
            Delay::Fixed(delay) => delay,
            Delay::Percentile { share, until_known } => {
                if self.answers.load(Ordering::Acquire) < SAMPLES_MIN {
                    return until_known;
                }
                let counts = self.counts.iter().map(|count| u64::from(count.load(Ordering::Acquire)));
                percentile(counts, share.millionths())
                    .map_or(until_known, |bucket| Duration::from_nanos(longest_of(bucket)))
            }
        }
    }

    /// How many second attempts were started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// How many of them answered first.
    #[must_use]
    pub fn won(&self) -> u64 {
        self.won.load(Ordering::Relaxed)
    }

    pub(super) fn learn(&self, took: Duration) {
        if matches!(self.hedge.newest().delay, Delay::Fixed(_)) {
            return;
        }
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanos)].fetch_add(1, Ordering::AcqRel);
        if self.answers.fetch_add(1, Ordering::AcqRel) + 1 >= FORGET_AT {
            // Whoever finds it full halves it; that two do so at once costs some memory of the past, and no more.
            self.answers.store(FORGET_AT / 2, Ordering::Release);
            for count in &self.counts {
                let _ = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| Some(count / 2));
            }
        }
    }

    pub(crate) fn explain(&self) -> String {
        self.hedge.newest().to_string()
    }

    /// Changes when second attempts start. What was learned about answers stays.
    pub(crate) fn reconfigure(&self, hedge: &Hedge) -> Result<(), ConfigError> {
        self.hedge.publish(|_| *hedge).map_err(|too_many| too_many.refusal("hedging", "hedge"))
    }
}

impl fmt::Debug for Hedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedger")
            .field("hedge", self.hedge.newest())
            .field("delay", &self.delay())
            .finish_non_exhaustive()
    }
}

/// A call in the making that starts a second attempt if the first takes too long. Made by [`Request::hedged`].
#[must_use = "nothing happens until `call`"]
pub struct Hedged<'g, C> {
    request: Request<'g, C>,
}

impl<'g, C> Hedged<'g, C> {
    pub(crate) fn new(request: Request<'g, C>) -> Self {
        Hedged { request }
    }

    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// The operation is run again beside itself, so the call must be declared safe: one that is not is made without a hedge.
    /// A second attempt costs a token of the retry budget; without one there is none. The first good answer wins, and the
    /// other is dropped without being held against the peer. If both fail, the error is that of the first; an answer that is
    /// judged a fault is no good answer.
    pub async fn call<F, Fut, T, E>(self, operation: F) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Classify<T, E> + Clone,
    {
        let guard = self.request.inner();
        let operation = RefCell::new(operation);
        let start = |attempt: Attempt| (operation.borrow_mut())(attempt);
        let settings = guard.settings.newest();
        let Some(hedger) = settings.hedger.as_deref().filter(|_| self.request.may_run_twice()) else {
            return self.request.call(start).await;
        };

        let began = guard.clock.precise();
        let hedge_at = began + hedger.delay();
        let request = self.request.with_identity();
        // The second attempt has what is left of the call's time, not a whole call timeout of its own.
        let deadline = settings.timeouts.call.map_or(Tick::NEVER, |timeout| began + timeout);
        let mut first = pin!(request.clone().first().call(start));
        let hedge = || request.clone().beside(deadline).call(start);
        let mut second = pin!(none_of(hedge));
        let mut timer = pin!(Timer::new());
        // What the first came to, if that was no good answer.
        let mut kept = None;
        let mut second_is_over = false;
        poll_fn(|cx| {
            if kept.is_none()
                && let Poll::Ready(result) = first.as_mut().poll(cx)
            {
                if result.is_ok() && !first.has_answered_badly() {
                    if let Some(second) = second.as_mut().as_pin_mut() {
                        second.supersede();
                    }
                    hedger.learn(guard.clock.precise().since(began));
                    return Poll::Ready(result);
                }
                kept = Some(result);
            }
            if second.is_none() && kept.is_none() {
                if timer.as_mut().poll_until(hedge_at, &guard.clock, cx).is_pending() {
                    return Poll::Pending;
                }
                // Asked once: a budget that is spent now is not asked again for this call.
                let token = settings
                    .budget
                    .as_ref()
                    .map(|budget| budget.try_spend_at(Tick::max(hedge_at, guard.clock.now())));
                match token {
                    Some(None) => second_is_over = true,
                    token => {
                        token.flatten().into_iter().for_each(crate::budget::Token::spend);
                        hedger.started.fetch_add(1, Ordering::Relaxed);
                        request.teller().tell(What::Hedged);
                    }
                }
                second.set(Some(hedge()));
            }
            if let (Some(mut second), false) = (second.as_mut().as_pin_mut(), second_is_over) {
                match second.as_mut().poll(cx) {
                    Poll::Ready(Ok(value)) if !second.has_answered_badly() => {
                        first.as_mut().answered_by_hedge();
                        hedger.won.fetch_add(1, Ordering::Relaxed);
                        hedger.learn(guard.clock.precise().since(began));
                        return Poll::Ready(Ok(value));
                    }
                    Poll::Ready(_) => second_is_over = true,
                    Poll::Pending => return Poll::Pending,
                }
            }
            let Some(result) = kept.take() else { return Poll::Pending };
            first.as_mut().not_answered_by_hedge();
            Poll::Ready(result)
        })
        .await
    }
}

/// Nothing yet of what `make` makes, whose type has no name.
fn none_of<T>(_make: impl Fn() -> T) -> Option<T> {
    None
}

impl<C> fmt::Debug for Hedged<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hedged").field(&self.request).finish()
    }
}
