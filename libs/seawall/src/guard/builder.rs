//! How a guard is made.

use std::sync::Arc;
use std::time::Duration;

use super::recipe::{Ground, Recipe, Shared};
use super::{Guard, Inner};
use crate::breaker::{Breaker, CircuitBreaker, Witness};
use crate::budget::RetryBudget;
use crate::bulkhead::Bulkhead;
use crate::chance::{Chance, entropy};
use crate::chaos::Chaos;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
use crate::event::{Rejections, Subscribers, Watch};
use crate::fallback::FallbackFilter;
use crate::hedge::Hedge;
use crate::name::Name;
use crate::rate::RateLimit;
use crate::retry::Retry;
use crate::telemetry::Telemetry;
use crate::timeout::CallTimeout;
use crate::versions::Versions;

/// A guard in the making.
///
/// Without anything else it holds a call timeout and budgeted retries; what is in it is what you asked for.
#[must_use = "a guard is made by `build`"]
#[derive(Clone, Debug)]
pub struct GuardBuilder {
    name: String,
    pub(crate) recipe: Recipe,
    clock: Clock,
    pause_tolerance: Option<Duration>,
    seed: Option<u64>,
    /// Those of a registry, if the guard is part of one.
    subscribers: Option<Arc<Subscribers>>,
    pub(super) telemetry: Telemetry,
}

impl GuardBuilder {
    pub(super) fn new(name: String) -> Self {
        GuardBuilder {
            name,
            recipe: Recipe::new(),
            clock: Clock::default(),
            pause_tolerance: None,
            seed: None,
            subscribers: None,
            telemetry: Telemetry::default(),
        }
    }

    /// How long a call may take with all its attempts. If it is not set, it is as long as all attempts and the
    /// longest waits between them, or 10 s where there is no attempt timeout.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.recipe.call_timeout = CallTimeout::Set(timeout);
        self
    }

    /// A call may take as long as it likes, unless it inherits a deadline.
    pub fn no_call_timeout(mut self) -> Self {
        self.recipe.call_timeout = CallTimeout::None;
        self
    }

    /// How long one attempt may take.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.recipe.attempt_timeout = Some(timeout);
        self
    }

    /// How often and when a failed attempt is tried again.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.recipe.retry = Some(retry);
        self
    }

    /// Each call is one attempt.
    pub fn no_retry(mut self) -> Self {
        self.recipe.retry = None;
        self
    }

    /// Stops calling a peer that is down.
    pub fn breaker(mut self, breaker: Breaker) -> Self {
        self.recipe.breaker = Some(breaker);
        self
    }

    /// Goes by a circuit that several guards share: it opens for all of them by what any of them sees, as where two kinds of
    /// calls go to one peer. It takes the place of a [`breaker`](GuardBuilder::breaker) of the guard's own. Made by
    /// [`Breaker::build`], or taken from another guard by [`Guard::breaker`]; it must go by the same clock. What happens to it
    /// is told by the guard that it was made for, if it was made for one, and by no other.
    pub fn shared_breaker(mut self, circuit: Arc<CircuitBreaker>) -> Self {
        self.recipe.shared_breaker = Some(Shared(circuit));
        self
    }

    /// Pays for retries and hedges out of a budget that several guards share. It takes the place of the
    /// [`budget`](Retry::budget) of the guard's own retries. Made by [`Budget::build`](crate::Budget::build), or taken from
    /// another guard by [`Guard::budget`]; it must go by the same clock.
    pub fn shared_budget(mut self, budget: Arc<RetryBudget>) -> Self {
        self.recipe.shared_budget = Some(Shared(budget));
        self
    }

    /// No more calls than agreed.
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.recipe.rate_limit = Some(limit);
        self
    }

    /// At most so many calls at once.
    pub fn bulkhead(mut self, bulkhead: Bulkhead) -> Self {
        self.recipe.bulkhead = Some(bulkhead);
        self
    }

    /// Starts a second attempt for one that takes too long, in calls that say [`hedged`](super::CallBuilder::hedged).
    pub fn hedge(mut self, hedge: Hedge) -> Self {
        self.recipe.hedge = Some(hedge);
        self
    }

    /// For which failures the fallbacks of its calls stand in, where a call does not say so itself.
    pub fn fallback_when(mut self, when: FallbackFilter) -> Self {
        self.recipe.fallback_when = when;
        self
    }

    /// Makes trouble on purpose, for tests and demonstrations.
    pub fn chaos(mut self, chaos: Chaos) -> Self {
        self.recipe.chaos = Some(chaos);
        self
    }

    /// The clock that everything in this guard goes by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// A process that was stopped for a while (a signal, a laptop that was closed, a machine that was moved) charges no peer with
    /// it. A timeout that fires this much later than it was set to was missed by the process itself: the attempt gets as much
    /// time again to read an answer that has come meanwhile, and if there is none, the circuit does not count it. The default
    /// is to count every timeout.
    ///
    /// A test that moves its clock by hand stops the process in this sense: leave it out there, or set it above the jumps.
    pub fn pause_tolerance(mut self, tolerance: Duration) -> Self {
        self.pause_tolerance = Some(tolerance);
        self
    }

    /// Fixes what is left to chance (jitter), so that a test is exact.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// It writes a log through `tracing`.
    #[cfg(feature = "tracing")]
    pub fn log(mut self, log: crate::telemetry::Log) -> Self {
        self.telemetry.log = Some(log);
        self
    }

    /// Each attempt has a span `seawall.attempt` of `tracing`, in which its operation is polled: what the operation logs
    /// stands below it, and a trace shows every attempt with its number and outcome.
    #[cfg(feature = "tracing")]
    pub fn attempt_spans(mut self) -> Self {
        self.telemetry.attempt_spans = true;
        self
    }

    /// It records metrics. Install the recorder first: the guard registers with the one that is there when it is made.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self) -> Self {
        self.telemetry.metrics = true;
        self
    }

    pub(crate) fn goes_by(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn named(mut self, name: String) -> Self {
        self.name = name;
        self
    }

    pub(crate) fn with_recipe(mut self, recipe: Recipe) -> Self {
        self.recipe = recipe;
        self
    }

    pub(crate) fn without_breaker(mut self) -> Self {
        self.recipe.breaker = None;
        self
    }

    /// One of many, whose metrics bear the family's name.
    pub(crate) fn of_family(mut self, family: &Arc<str>) -> Self {
        self.telemetry.become_family(family);
        self
    }

    /// Shares what a registry gives to all its guards; what the guard itself was given stays.
    pub(crate) fn in_registry(
        mut self,
        subscribers: &Arc<Subscribers>,
        telemetry: &Telemetry,
        clock: Option<&Clock>,
        pause_tolerance: Option<Duration>,
    ) -> Self {
        self.subscribers = Some(subscribers.clone());
        self.telemetry.add(telemetry);
        self.pause_tolerance = self.pause_tolerance.or(pause_tolerance);
        if let Some(clock) = clock {
            self.clock = clock.clone();
        }
        self
    }

    /// Makes the guard, or says everything that is wrong with it at once.
    pub fn build(self) -> Result<Guard, ConfigError> {
        let mut problems = Problems::default();
        problems.refuse_if(self.name.trim().is_empty(), "name", || {
            "a guard without a name can't be found; name it after the dependency".into()
        });
        let timeouts = self.recipe.check(&mut problems);
        self.recipe.check_clocks(&self.clock, &mut problems);
        problems.into_result(format!("guard `{}`", self.name), ())?;
        let seed = self.seed.unwrap_or_else(entropy);
        let name: Arc<str> = self.name.into();
        let shown = Name::new(&name);
        let listeners = self.telemetry.listeners(&name, &self.clock);
        let watch = Watch::new(name, self.clock.clone(), listeners, self.telemetry, self.subscribers);
        let watch = Arc::new(watch);
        let told = watch.clone();
        let ground = Ground {
            clock: self.clock.clone(),
            seed,
            witness: Witness::new(move |sign, moved| told.circuit(sign, moved)),
        };
        let settings = self.recipe.at_work(timeouts, &ground, None)?;
        Ok(Guard {
            inner: Arc::new(Inner {
                chance: Chance::seeded(seed),
                settings: Versions::new(settings),
                rejections: Rejections::new(self.clock.now()),
                clock: self.clock,
                pause_tolerance: self.pause_tolerance,
                name: shown,
                watch,
                ground,
            }),
        })
    }
}
