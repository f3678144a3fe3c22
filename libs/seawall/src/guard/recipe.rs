//! What a guard is made of, apart from what it has been through.
//!
//! A recipe is what a builder or a file asks for; [`Settings`] are a recipe at work. Changing a running guard means
//! working by another recipe with the same state: what both recipes have keeps its windows, tokens, permits and what
//! it has learned, what is new starts empty, what is gone is gone.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::Settings;
use crate::breaker::{Breaker, CircuitBreaker, Scope, Witness};
use crate::budget::{Budget, RetryBudget};
use crate::bulkhead::{Bulkhead, Gate};
use crate::chaos::{Chaos, Injector};
use crate::clock::{Clock, ClockId};
use crate::config::{ConfigError, Problems};
use crate::fallback::FallbackFilter;
use crate::hedge::{Hedge, Hedger};
use crate::rate::{RateLimit, RateLimiter};
use crate::retry::Retry;
use crate::timeout::{CallTimeout, Timeouts};

/// What a guard is made of.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Recipe {
    pub(super) call_timeout: CallTimeout,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) retry: Option<Retry>,
    pub(super) breaker: Option<Breaker>,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) bulkhead: Option<Bulkhead>,
    pub(super) chaos: Option<Chaos>,
    pub(super) hedge: Option<Hedge>,
    pub(super) fallback_when: FallbackFilter,
    pub(super) shared_breaker: Option<Shared<CircuitBreaker>>,
    pub(super) shared_budget: Option<Shared<RetryBudget>>,
}

/// State that several guards share. Two are equal if they are the same.
#[derive(Debug)]
pub(crate) struct Shared<S>(pub(super) Arc<S>);

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<S> PartialEq for Shared<S> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What state needs to come to life, the same for all recipes of a guard.
pub(crate) struct Ground {
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    /// Who is told what happens to the circuit.
    pub(crate) witness: Witness,
}

impl Recipe {
    pub(super) fn new() -> Self {
        Recipe {
            call_timeout: CallTimeout::Derived,
            attempt_timeout: None,
            retry: Some(Retry::default()),
            breaker: None,
            rate_limit: None,
            bulkhead: None,
            chaos: None,
            hedge: None,
            fallback_when: FallbackFilter::default(),
            shared_breaker: None,
            shared_budget: None,
        }
    }

    /// Finds everything that is wrong, and what the timeouts are if nothing is.
    pub(super) fn check(&self, problems: &mut Problems) -> Timeouts {
        let attempts = self.attempts();
        let between = self
            .retry
            .as_ref()
            .map_or(Duration::ZERO, |retry| retry.settings.backoff.longest_total(attempts.saturating_sub(1)));
        // Each attempt may have to wait for its turn and for its place.
        let turn = self.rate_limit.map_or(Duration::ZERO, |limit| limit.max_wait);
        let place = self.bulkhead.map_or(Duration::ZERO, |bulkhead| bulkhead.max_wait);
        let waits = between.saturating_add(turn.saturating_add(place).saturating_mul(attempts));
        let timeouts = Timeouts::new(self.call_timeout, self.attempt_timeout, attempts, waits, problems);
        if let Some(retry) = &self.retry {
            retry.check(problems);
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
            breaker.check(problems);
        }
        if let Some(limit) = &self.rate_limit {
            limit.check(problems);
        }
        if let Some(bulkhead) = &self.bulkhead {
            bulkhead.check(problems);
        }
        if let Some(chaos) = &self.chaos {
            chaos.check(problems);
        }
        if let Some(hedge) = &self.hedge {
            hedge.check(problems);
        }
        self.refuse_impossible(&timeouts, problems);
        timeouts
    }

    /// What is shared must go by the guard's clock: its times would mean nothing here.
    pub(super) fn check_clocks(&self, clock: &Clock, problems: &mut Problems) {
        let other = |id: ClockId| id != clock.id();
        let text = || "it goes by another clock than the guard; build both with the same one".to_owned();
        let circuit = self.shared_breaker.as_ref().map(|shared| shared.0.clock_id());
        problems.refuse_if(circuit.is_some_and(other), "breaker", text);
        let budget = self.shared_budget.as_ref().map(|shared| shared.0.clock_id());
        problems.refuse_if(budget.is_some_and(other), "retry.budget", text);
    }

    pub(super) fn explain_retry(&self) -> String {
        self.retry.as_ref().map(Retry::to_string).unwrap_or_default()
    }

    fn attempts(&self) -> u32 {
        self.retry.as_ref().map_or(1, |retry| retry.settings.attempts)
    }

    /// What pays for retries and hedges. Hedges are paid for whether the guard retries or not.
    fn budget(&self) -> Option<&Budget> {
        static OF_HEDGES: LazyLock<Budget> = LazyLock::new(Budget::default);
        match self.retry.as_ref().filter(|retry| retry.settings.attempts > 1) {
            Some(retry) => retry.budget.as_ref(),
            None => self.hedge.map(|_| &*OF_HEDGES),
        }
    }

    /// Puts a recipe that was checked to work, with the state of `old` where there is one.
    pub(super) fn at_work(
        self,
        timeouts: Timeouts,
        ground: &Ground,
        old: Option<&Settings>,
    ) -> Result<Settings, ConfigError> {
        let clock = || ground.clock.clone();
        let was = old.map(|old| &old.recipe);
        // A limit that finds itself from latency has to measure it.
        let adaptive = self.bulkhead.is_some_and(|bulkhead| bulkhead.is_adaptive());
        let abandoned_after = timeouts.abandoned_after();
        let own_breaker = keep(
            self.breaker.as_ref().filter(|_| self.shared_breaker.is_none()),
            old.filter(|old| old.recipe.shared_breaker.is_none()).and_then(|old| old.breaker.as_ref()),
            // What a dropped call means also depends on the timeouts.
            was.is_some_and(|was| was.breaker == self.breaker)
                && old.is_some_and(|old| old.timeouts == timeouts),
            |breaker| CircuitBreaker::new(breaker, clock(), abandoned_after).told_to(&ground.witness),
            |circuit, breaker| circuit.reconfigure_under(breaker, abandoned_after),
        )?;
        let own_budget = keep(
            self.budget().filter(|_| self.shared_budget.is_none()),
            old.filter(|old| old.recipe.shared_budget.is_none()).and_then(|old| old.budget.as_ref()),
            was.is_some_and(|was| was.budget() == self.budget()),
            |budget| RetryBudget::new(budget, clock()),
            RetryBudget::reconfigure,
        )?;
        let breaker = self.shared_breaker.as_ref().map(|shared| shared.0.clone()).or(own_breaker);
        let budget = self.shared_budget.as_ref().map(|shared| shared.0.clone()).or(own_budget);
        let limiter = keep(
            self.rate_limit.as_ref(),
            old.and_then(|old| old.limiter.as_ref()),
            was.is_some_and(|was| was.rate_limit == self.rate_limit),
            |limit| RateLimiter::new(limit, clock()),
            RateLimiter::reconfigure,
        )?;
        let gate = keep(
            self.bulkhead.as_ref(),
            old.and_then(|old| old.gate.as_ref()),
            was.is_some_and(|was| was.bulkhead == self.bulkhead),
            |bulkhead| Gate::new(bulkhead, clock()),
            Gate::reconfigure,
        )?;
        let chaos = keep(
            self.chaos.as_ref(),
            old.and_then(|old| old.chaos.as_ref()),
            was.is_some_and(|was| was.chaos == self.chaos),
            |chaos| Injector::new(chaos, ground.seed),
            Injector::reconfigure,
        )?;
        let hedger = keep(
            self.hedge.as_ref(),
            old.and_then(|old| old.hedger.as_ref()),
            was.is_some_and(|was| was.hedge == self.hedge),
            |hedge| Hedger::new(*hedge),
            Hedger::reconfigure,
        )?;
        Ok(Settings {
            timeouts,
            retry: self.retry.as_ref().map(|retry| retry.settings.clone()).filter(|retry| retry.attempts > 1),
            scope: self.breaker.as_ref().map_or(Scope::Attempt, |breaker| breaker.scope),
            limited: limiter.is_some() || gate.is_some(),
            timed: adaptive || timeouts.call.is_some() || timeouts.attempt.is_some() || budget.is_some(),
            precise: adaptive || timeouts.precise(),
            budget,
            breaker,
            limiter,
            gate,
            chaos,
            hedger,
            recipe: self,
        })
    }
}

impl Settings {
    /// When the fallback of a call stands in, where the call does not say so itself.
    pub(crate) fn fallback_when(&self) -> &FallbackFilter {
        &self.recipe.fallback_when
    }
}

/// The state for what is asked for: as it is where nothing has changed, changed where something has, new where there
/// was none.
fn keep<C, S>(
    asked: Option<&C>,
    old: Option<&Arc<S>>,
    same: bool,
    make: impl FnOnce(&C) -> S,
    change: impl FnOnce(&S, &C) -> Result<(), ConfigError>,
) -> Result<Option<Arc<S>>, ConfigError> {
    let Some(asked) = asked else { return Ok(None) };
    match old {
        None => Ok(Some(Arc::new(make(asked)))),
        Some(old) => {
            if !same {
                change(old, asked)?;
            }
            Ok(Some(Arc::clone(old)))
        }
    }
}
