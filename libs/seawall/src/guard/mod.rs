//! A named set of policies around one dependency.
#![doc = ""]
#![doc = include_str!("../../docs/guard.md")]

mod admission;
pub(crate) mod ambient;
mod attempt;
mod beginning;
mod blocking;
mod builder;
#[cfg(feature = "tokio")]
mod call;
mod call_builder;
mod decide;
mod ended;
mod ending;
mod explain;
mod extended;
#[cfg(feature = "tokio")]
mod extended_call;
mod extras;
mod hook;
mod impossible;
#[cfg(feature = "tokio")]
mod loan;
#[cfg(feature = "tokio")]
mod making;
#[cfg(feature = "tokio")]
mod opening;
#[cfg(feature = "tokio")]
mod operation;
mod pause;
#[cfg(feature = "tokio")]
mod progress;
mod rare;
mod recipe;
#[cfg(feature = "tokio")]
mod stage;
mod tell;
#[cfg(feature = "tokio")]
mod timer;

/// Why the policies of a guard stand in this order.
#[cfg(any(doc, doctest))]
#[doc = ""]
#[doc = include_str!("../../docs/order.md")]
pub mod order {}

pub use ambient::Deadline;
pub use attempt::{Attempt, Key};
pub use builder::GuardBuilder;
#[cfg(feature = "tokio")]
pub use call::Call;
pub use call_builder::CallBuilder;
#[cfg(feature = "tokio")]
pub(crate) use call_builder::Terms;
#[cfg(feature = "tokio")]
pub(crate) use ended::Ended;
#[cfg(feature = "tokio")]
pub use extended_call::ExtendedCall;
pub use extras::{DeadLetterSink, Extras, Hedging, IntoExtras, NoDeadLetter, Plain, Unhedged};
#[cfg(feature = "tokio")]
pub use loan::Loan;
#[cfg(feature = "tokio")]
pub use operation::Operation;
#[cfg(feature = "tokio")]
pub(crate) use progress::Progress;
#[cfg(feature = "tokio")]
pub(crate) use timer::Timer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use crate::breaker::{CircuitBreaker, Scope};
use crate::budget::RetryBudget;
use crate::bulkhead::Gate;
use crate::chance::Chance;
use crate::chaos::Injector;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::error::Error;
#[cfg(feature = "tokio")]
use crate::event::Events;
use crate::event::{EventKind, Rejection, Rejections, Watch};
use crate::fault::{Causes, Classifier, Judge};
use crate::hedge::Hedger;
use crate::name::Name;
use crate::rate::RateLimiter;
use crate::retry::{self, Safety};
use crate::timeout::Timeouts;
use crate::versions::Versions;
use recipe::{Ground, Recipe};

/// A named set of policies around one dependency.
///
/// A handle: clones share everything, and one budget and one circuit are shared by all callers of the guard.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Backoff, Breaker, Guard, Retry, millis, secs};
///
/// let payments = Guard::builder("payments")
///     .call_timeout(secs(10))
///     .attempt_timeout(secs(3))
///     .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(100))))
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
    pub(crate) clock: Clock,
    /// A timeout that fires so much too late was missed by the process itself.
    pause_tolerance: Option<Duration>,
    pub(crate) settings: Versions<Settings>,
    pub(crate) chance: Chance,
    /// Whom to tell what happens. Knows the guard's name.
    pub(crate) watch: Arc<Watch>,
    pub(crate) rejections: Rejections,
    /// As errors carry it.
    pub(crate) name: Name,
    ground: Ground,
}

/// What a call reads once, when it begins: a recipe at work.
///
/// The state of each policy is shared by all versions that have it, so that it outlives a change of settings; and a
/// version is never dropped before its guard, so a call that began under an old one borrows from it to its end.
pub(crate) struct Settings {
    pub(crate) timeouts: Timeouts,
    pub(crate) retry: Option<retry::Settings>,
    pub(crate) budget: Option<Arc<RetryBudget>>,
    pub(crate) breaker: Option<Arc<CircuitBreaker>>,
    pub(crate) limiter: Option<Arc<RateLimiter>>,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) chaos: Option<Arc<Injector>>,
    pub(crate) hedger: Option<Arc<Hedger>>,
    pub(crate) scope: Scope,
    /// Whether there is a rate limit or a bulkhead.
    pub(crate) limited: bool,
    /// Whether a call has to know when it began.
    pub(crate) timed: bool,
    /// Whether one of the timeouts is too short for the coarse clock.
    pub(crate) precise: bool,
    /// What it was made by.
    pub(crate) recipe: Recipe,
}

impl Guard {
    /// Begins a guard for the dependency of this name.
    pub fn builder(name: impl Into<String>) -> GuardBuilder {
        GuardBuilder::new(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.watch.name
    }

    /// Runs an operation that must not run twice: it is retried only when it certainly did not run.
    ///
    /// The operation is called once for each attempt. Say more about it first with
    /// [`idempotent`](Guard::idempotent), [`keyed`](Guard::keyed) or [`classify`](Guard::classify).
    #[cfg(feature = "tokio")]
    #[inline]
    pub fn call<F, Fut, T, E, K>(&self, operation: F) -> Call<'_, F, Causes, K>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Judge<T, E, K>,
    {
        self.request().call(operation)
    }

    /// Runs one attempt of an operation: everything in the guard but its retries and their budget.
    #[cfg(feature = "tokio")]
    #[inline]
    pub fn attempt<F, Fut, T, E, K>(&self, operation: F) -> Call<'_, F, Causes, K>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Judge<T, E, K>,
    {
        self.request().single_attempt().call(operation)
    }

    /// Runs a blocking operation on this thread, with everything that the guard has; see [`CallBuilder::run`].
    pub fn run<F, T, E, K>(&self, operation: F) -> Result<T, Error<E>>
    where
        F: FnMut(Attempt) -> Result<T, E>,
        Causes: Judge<T, E, K>,
    {
        self.request().run(operation)
    }

    /// The operation must not run twice, which is what a guard takes for granted: it is retried only when it certainly did
    /// not run.
    #[inline]
    pub fn once(&self) -> CallBuilder<'_> {
        self.request()
    }

    /// Running the operation twice is the same as running it once.
    #[inline]
    pub fn idempotent(&self) -> CallBuilder<'_> {
        self.request().safety(Safety::Idempotent)
    }

    /// The peer honours [`Attempt::key`], which is the same for all attempts of a call.
    #[inline]
    pub fn keyed(&self) -> CallBuilder<'_> {
        self.request().safety(Safety::Keyed)
    }

    /// As [`keyed`](Guard::keyed), with a key of your own, so that a call that is made again after a restart is
    /// still the same call.
    pub fn key(&self, key: Key) -> CallBuilder<'_> {
        self.request().key(key)
    }

    /// What the operation is called in logs and events, like `charge`. Says nothing about running it twice.
    pub fn operation<'g>(&'g self, operation: &'g str) -> CallBuilder<'g> {
        self.request().operation(operation)
    }

    /// What the call is about, for logs and events: the order's number, the customer.
    pub fn about<'g>(&'g self, business_key: &'g str) -> CallBuilder<'g> {
        self.request().about(business_key)
    }

    /// Judges results by `classify` instead of by their causes.
    pub fn classify<C>(&self, classify: C) -> CallBuilder<'_, Classifier<C>> {
        self.request().classify(classify)
    }

    /// Bounds the call by a deadline that came from elsewhere: another task, a header.
    pub fn deadline(&self, deadline: Deadline) -> CallBuilder<'_> {
        self.request().deadline(deadline)
    }

    fn request(&self) -> CallBuilder<'_> {
        CallBuilder::new(&self.inner)
    }

    /// Its circuit, if it has a breaker.
    #[must_use]
    pub fn breaker(&self) -> Option<&Arc<CircuitBreaker>> {
        self.settings().breaker.as_ref()
    }

    /// Its rate limiter, if it has one.
    #[must_use]
    pub fn rate_limiter(&self) -> Option<&Arc<RateLimiter>> {
        self.settings().limiter.as_ref()
    }

    /// Its bulkhead, if it has one.
    #[must_use]
    pub fn bulkhead(&self) -> Option<&Arc<Gate>> {
        self.settings().gate.as_ref()
    }

    /// When its second attempts start, if it has them.
    #[must_use]
    pub fn hedger(&self) -> Option<&Hedger> {
        self.settings().hedger.as_deref()
    }

    /// Who makes trouble in it, if anybody does.
    #[must_use]
    pub fn chaos(&self) -> Option<&Injector> {
        self.settings().chaos.as_deref()
    }

    /// Its retry budget, if it has one.
    #[must_use]
    pub fn budget(&self) -> Option<&Arc<RetryBudget>> {
        self.settings().budget.as_ref()
    }

    /// Changes what is in it while it runs, to what `builder` asks for; or says everything that is wrong with that, and
    /// changes nothing.
    ///
    /// Circuits, windows, budgets, places in the bulkhead and what was learned stay; what is new starts empty. Calls under
    /// way end as they began. The builder's name, clock, seed and listeners do not matter here. What was
    /// changed at a policy itself (`guard.breaker()…reconfigure`) is not known here: the next change of that policy replaces it. Says whether anything
    /// changed.
    pub fn reconfigure(&self, builder: GuardBuilder) -> Result<bool, ConfigError> {
        let recipe = builder.recipe;
        let mut problems = Problems::default();
        let timeouts = recipe.check(&mut problems);
        recipe.check_clocks(&self.inner.clock, &mut problems);
        problems.into_result(format!("guard `{}`", self.name()), ())?;
        let mut taken_out = None;
        let changed = self.inner.settings.try_publish(|old| {
            if old.recipe == recipe {
                return Ok::<_, ConfigError>(None);
            }
            let new = recipe.at_work(timeouts, &self.inner.ground, Some(old))?;
            taken_out =
                old.breaker.clone().filter(|_| new.breaker.is_none() && old.recipe.shared_breaker.is_none());
            Ok(Some(new))
        })?;
        if let Some(circuit) = taken_out {
            circuit.retire();
        }
        if changed {
            self.inner.watch.tell_of_guard(EventKind::Reconfigured);
        }
        Ok(changed)
    }

    /// Listens to what happens in it. At most `capacity` events (at least one) wait to be taken; what comes then is dropped and counted,
    /// because a guard never waits for whoever listens.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Events {
        self.inner.watch.subscribe(capacity)
    }

    /// The last calls that it refused, the newest first.
    #[must_use]
    pub fn last_rejections(&self) -> Vec<Rejection> {
        self.inner.rejections.list(self.inner.clock.now())
    }

    /// Its name, for whoever keeps it.
    #[cfg(feature = "metrics")]
    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.inner.watch.name.clone()
    }

    /// The clock that it goes by.
    #[cfg(any(feature = "task", feature = "tracing"))]
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Whether this is the only handle. If so, everything that was done by others can be seen.
    pub(crate) fn is_unshared(&self) -> bool {
        let unshared = Arc::strong_count(&self.inner) == 1;
        // Counting alone orders nothing; the last other handle was let go with a release.
        fence(Ordering::Acquire);
        unshared
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    fn settings(&self) -> &Settings {
        self.inner.settings.newest()
    }

    /// What is in it, in order from outside in, with the values in force.
    #[must_use]
    pub fn explain(&self) -> String {
        explain::explain(&self.inner)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", &self.name()).finish_non_exhaustive()
    }
}
