//! A named set of policies around one dependency.
#![doc = ""]
#![doc = include_str!("../../docs/guard.md")]

mod admission;
pub(crate) mod ambient;
mod attempt;
mod blocking;
mod builder;
mod call;
mod decide;
mod ending;
mod explain;
mod operation;
mod request;
mod timer;

/// Why the policies of a guard stand in this order.
#[cfg(any(doc, doctest))]
#[doc = ""]
#[doc = include_str!("../../docs/order.md")]
pub mod order {}

pub use ambient::Deadline;
pub use attempt::{Attempt, Key};
pub use builder::GuardBuilder;
pub use call::Call;
pub use operation::Operation;
pub use request::Request;
pub(crate) use timer::Timer;

use std::fmt;
use std::sync::Arc;

use crate::breaker::{CircuitBreaker, Scope};
use crate::budget::RetryBudget;
use crate::bulkhead::Gate;
use crate::chance::Chance;
use crate::chaos::Injector;
use crate::clock::Clock;
use crate::error::Error;
use crate::fallback::When;
use crate::fault::{Causes, Classify};
use crate::hedge::Hedger;
use crate::rate::RateLimiter;
use crate::retry::{self, Safety};
use crate::timeout::Timeouts;
use crate::versions::Versions;

/// A named set of policies around one dependency.
///
/// A handle: clones share everything, and one budget and one circuit are shared by all callers of the guard.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
///
/// let payments = Guard::builder("payments")
///     .call_timeout(secs(10))
///     .attempt_timeout(secs(3))
///     .retry(Retry::attempts(3).backoff(Backoff::exponential(millis(100))))
///     .breaker(Breaker::consecutive_failures(5).cooldown(secs(30)))
///     .build()?;
///
/// let receipt = payments.keyed().call(|attempt| charge(attempt.key())).await?;
/// # assert_eq!(receipt, 42);
/// # Ok(()) }
/// # async fn charge(_key: seawall::Key) -> std::io::Result<u32> { Ok(42) }
/// ```
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

/// State and settings of a guard.
pub(crate) struct Inner {
    pub(crate) name: Box<str>,
    pub(crate) clock: Clock,
    pub(crate) settings: Versions<Settings>,
    pub(crate) budget: Option<RetryBudget>,
    pub(crate) breaker: Option<CircuitBreaker>,
    pub(crate) limiter: Option<RateLimiter>,
    pub(crate) gate: Option<Gate>,
    pub(crate) chaos: Option<Injector>,
    pub(crate) hedger: Option<Hedger>,
    pub(crate) chance: Chance,
}

/// What a call reads once, when it begins.
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: Option<retry::Settings>,
    pub(crate) retry_text: String,
    pub(crate) scope: Scope,
    /// Whether there is a rate limit or a bulkhead.
    pub(crate) limited: bool,
    /// Whether a call has to know when it began.
    pub(crate) timed: bool,
    /// Whether one of the timeouts is too short for the coarse clock.
    pub(crate) precise: bool,
    /// When the fallback of a call stands in, where the call does not say so itself.
    pub(crate) fallback_when: When,
}

impl Guard {
    /// Begins a guard for the dependency of this name.
    pub fn builder(name: impl Into<String>) -> GuardBuilder {
        GuardBuilder::new(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Runs an operation that must not run twice: it is retried only when it certainly did not run.
    ///
    /// The operation is called once for each attempt. Say more about it first with
    /// [`idempotent`](Guard::idempotent), [`keyed`](Guard::keyed) or [`classify`](Guard::classify).
    #[inline]
    pub fn call<F, Fut, T, E>(&self, operation: F) -> Call<'_, F, Causes>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Classify<T, E>,
    {
        self.request().call(operation)
    }

    /// Runs one attempt of an operation: everything in the guard but its retries and their budget.
    #[inline]
    pub fn attempt<F, Fut, T, E>(&self, operation: F) -> Call<'_, F, Causes>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Classify<T, E>,
    {
        self.request().single_attempt().call(operation)
    }

    /// Runs a blocking operation on this thread, with everything that the guard has; see [`Request::run`].
    pub fn run<F, T, E>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
        Causes: Classify<T, E>,
    {
        self.request().run(operation)
    }

    /// Running the operation twice is the same as running it once.
    #[inline]
    pub fn idempotent(&self) -> Request<'_> {
        self.request().safety(Safety::Idempotent)
    }

    /// The peer honours [`Attempt::key`], which is the same for all attempts of a call.
    #[inline]
    pub fn keyed(&self) -> Request<'_> {
        self.request().safety(Safety::Keyed)
    }

    /// As [`keyed`](Guard::keyed), with a key of your own, so that a call that is made again after a restart is
    /// still the same call.
    pub fn key(&self, key: Key) -> Request<'_> {
        self.request().key(key)
    }

    /// Judges results by `classify` instead of by their causes.
    pub fn classify<C>(&self, classify: C) -> Request<'_, C> {
        self.request().classify(classify)
    }

    /// Bounds the call by a deadline that came from elsewhere: another task, a header.
    pub fn deadline(&self, deadline: Deadline) -> Request<'_> {
        self.request().deadline(deadline)
    }

    fn request(&self) -> Request<'_> {
        Request::new(&self.inner)
    }

    /// Its circuit, if it has a breaker.
    #[must_use]
    pub fn breaker(&self) -> Option<&CircuitBreaker> {
        self.inner.breaker.as_ref()
    }

    /// Its rate limiter, if it has one.
    #[must_use]
    pub fn rate_limiter(&self) -> Option<&RateLimiter> {
        self.inner.limiter.as_ref()
    }

    /// Its bulkhead, if it has one.
    #[must_use]
    pub fn bulkhead(&self) -> Option<&Gate> {
        self.inner.gate.as_ref()
    }

    /// When its second attempts start, if it has them.
    #[must_use]
    pub fn hedger(&self) -> Option<&Hedger> {
        self.inner.hedger.as_ref()
    }

    /// Who makes trouble in it, if anybody does.
    #[must_use]
    pub fn chaos(&self) -> Option<&Injector> {
        self.inner.chaos.as_ref()
    }

    /// Its retry budget, if it has one.
    #[must_use]
    pub fn budget(&self) -> Option<&RetryBudget> {
        self.inner.budget.as_ref()
    }

    /// What is in it, in order from outside in, with the values in force.
    #[must_use]
    pub fn explain(&self) -> String {
        explain::explain(&self.inner)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.inner.name).finish_non_exhaustive()
    }
}
