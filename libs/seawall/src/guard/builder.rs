//! How a guard is made.

use std::sync::Arc;
use std::time::Duration;

use super::{Guard, Inner, Settings};
use crate::breaker::{Breaker, CircuitBreaker, Scope};
use crate::budget::RetryBudget;
use crate::bulkhead::{Bulkhead, Gate};
use crate::chance::{Chance, entropy};
use crate::chaos::{Chaos, Injector};
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::fallback::When;
use crate::hedge::{Hedge, Hedger};
use crate::rate::{RateLimit, RateLimiter};
use crate::retry::Retry;
use crate::timeout::{CallTimeout, Timeouts};
use crate::versions::Versions;

/// A guard in the making.
///
/// Without anything else it holds a call timeout and budgeted retries; what is in it is what you asked for.
#[must_use = "a guard is made by `build`"]
#[derive(Clone, Debug)]
pub struct GuardBuilder {
    name: String,
    call_timeout: CallTimeout,
    attempt_timeout: Option<Duration>,
    retry: Option<Retry>,
    breaker: Option<Breaker>,
    rate_limit: Option<RateLimit>,
    bulkhead: Option<Bulkhead>,
    chaos: Option<Chaos>,
    hedge: Option<Hedge>,
    fallback_when: When,
    clock: Clock,
    seed: Option<u64>,
}

impl GuardBuilder {
    pub(super) fn new(name: String) -> Self {
        GuardBuilder {
            name,
            call_timeout: CallTimeout::Derived,
            attempt_timeout: None,
            retry: Some(Retry::default()),
            breaker: None,
            rate_limit: None,
            bulkhead: None,
            chaos: None,
            hedge: None,
            fallback_when: When::default(),
            clock: Clock::default(),
            seed: None,
        }
    }

    /// How long a call may take with all its attempts. If it is not set, it is as long as all attempts and the
    /// longest waits between them, or 10 s where there is no attempt timeout.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = CallTimeout::Set(timeout);
        self
    }

    /// A call may take as long as it likes, unless it inherits a deadline.
    pub fn no_call_timeout(mut self) -> Self {
        self.call_timeout = CallTimeout::None;
        self
    }

    /// How long one attempt may take.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How often and when a failed attempt is tried again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Each call is one attempt.
    pub fn no_retry(mut self) -> Self {
        self.retry = None;
        self
    }

    /// Stops calling a peer that is down.
    pub fn breaker(mut self, breaker: Breaker) -> Self {
        self.breaker = Some(breaker);
        self
    }

    /// No more calls than agreed.
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate_limit = Some(limit);
        self
    }

    /// At most so many calls at once.
    pub fn bulkhead(mut self, bulkhead: Bulkhead) -> Self {
        self.bulkhead = Some(bulkhead);
        self
    }

    /// Starts a second attempt for one that takes too long, in calls that say [`hedged`](super::Request::hedged).
    pub fn hedge(mut self, hedge: Hedge) -> Self {
        self.hedge = Some(hedge);
        self
    }

    /// For which failures the fallbacks of its calls stand in, where a call does not say so itself.
    pub fn fallback_when(mut self, when: When) -> Self {
        self.fallback_when = when;
        self
    }

    /// Makes trouble on purpose, for tests and demonstrations.
    pub fn chaos(mut self, chaos: Chaos) -> Self {
        self.chaos = Some(chaos);
        self
    }

    /// The clock that everything in this guard goes by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Fixes what is left to chance (jitter), so that a test is exact.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the guard, or says everything that is wrong with it at once.
    pub fn build(self) -> Result<Guard, ConfigError> {
        let mut problems = Problems::default();
        problems.refuse_if(self.name.trim().is_empty(), "name", || {
            "a guard without a name can't be found; name it after the dependency".into()
        });
        let attempts = self.retry.as_ref().map_or(1, |retry| retry.settings.attempts);
        let waits = self
            .retry
            .as_ref()
            .map_or(Duration::ZERO, |retry| retry.settings.backoff.longest_total(attempts.saturating_sub(1)));
        let timeouts = Timeouts::new(self.call_timeout, self.attempt_timeout, attempts, waits, &mut problems);
        if let Some(retry) = &self.retry {
            retry.check(&mut problems);
            let first = retry.settings.backoff.shortest_first();
            let never = attempts > 1 && timeouts.call.is_some_and(|call| first >= call);
            problems.refuse_if(never, "retry.backoff", || {
                format!(
                    "the first wait of at least {first:?} does not fit into the call timeout of {:?}, so nothing is \
                     ever retried; wait shorter or allow the call more time",
                    timeouts.call.unwrap_or_default()
                )
            });
        }
        if let Some(breaker) = &self.breaker {
            breaker.check(&mut problems);
        }
        if let Some(limit) = &self.rate_limit {
            limit.check(&mut problems);
        }
        if let Some(bulkhead) = &self.bulkhead {
            bulkhead.check(&mut problems);
        }
        if let Some(chaos) = &self.chaos {
            chaos.check(&mut problems);
        }
        if let Some(hedge) = &self.hedge {
            hedge.check(&mut problems);
        }
        problems.into_result(format!("guard `{}`", self.name), ())?;

        let breaker = self.breaker;
        // A limit that finds itself from latency has to measure it.
        let adaptive = self.bulkhead.is_some_and(|bulkhead| bulkhead.is_adaptive());
        let scope = breaker.as_ref().map_or(Scope::Attempt, |breaker| breaker.scope);
        let budget = self.retry.as_ref().filter(|_| attempts > 1).and_then(|retry| retry.budget);
        let seed = self.seed.unwrap_or_else(entropy);
        let inner = Inner {
            name: self.name.into(),
            budget: budget.map(|budget| RetryBudget::new(&budget, self.clock.clone())),
            breaker: breaker
                .map(|breaker| CircuitBreaker::new(&breaker, self.clock.clone(), timeouts.abandoned_after())),
            limiter: self.rate_limit.map(|limit| RateLimiter::new(&limit, self.clock.clone())),
            gate: self.bulkhead.map(|bulkhead| Gate::new(&bulkhead, self.clock.clone())),
            chaos: self.chaos.map(|chaos| Injector::new(&chaos, seed)),
            hedger: self.hedge.map(Hedger::new),
            clock: self.clock,
            chance: Chance::seeded(seed),
            settings: Versions::new(Settings {
                timeouts,
                retry_text: self.retry.as_ref().map(Retry::to_string).unwrap_or_default(),
                retry: self.retry.map(|retry| retry.settings).filter(|_| attempts > 1),
                scope,
                limited: self.rate_limit.is_some() || self.bulkhead.is_some(),
                timed: adaptive || timeouts.call.is_some() || timeouts.attempt.is_some() || budget.is_some(),
                precise: adaptive || timeouts.precise(),
                fallback_when: self.fallback_when,
            }),
        };
        Ok(Guard { inner: Arc::new(inner) })
    }
}
