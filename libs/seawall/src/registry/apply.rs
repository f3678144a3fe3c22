//! A configuration put to work, at start and again while everything runs.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Entry, Keyed, Registry};
use crate::breaker::State;
use crate::config::{Changes, Config, ConfigError, Loader, Plan, Problems};
use crate::guard::Timer;

/// How a guard that is listed under health stands.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The guard, or the family of guards.
    pub name: String,
    /// Its circuit, if it has one; of a family the worst one.
    pub circuit: Option<State>,
}

impl Health {
    /// Whether calls pass.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !matches!(self.circuit, Some(State::Open | State::ForcedOpen))
    }
}

impl Registry {
    /// Brings its guards to this configuration, and says what changed since the one before.
    ///
    /// Guards that are new are made; those that are there are [changed while they run](crate::Guard::reconfigure), without
    /// losing circuits, windows, budgets and permits; those that only the configuration before had are forgotten. Guards
    /// that were made in code and are in no configuration are left alone.
    ///
    /// ```
    /// use seawall::{Registry, config::{Config, Format}};
    /// # let read = |text| Config::parse("seawall.yaml", text, Format::Yaml);
    /// let registry = Registry::new();
    /// registry.apply(&read("guards: {payments: {breaker: {}}, mail: {}}")?)?;
    /// let payments = registry.guard("payments").expect("it is in the file");
    ///
    /// let changes = registry.apply(&read("guards: {payments: {breaker: {cooldown: 60s}}}")?)?;
    /// assert_eq!(changes.to_string(), "- mail\npayments.breaker.cooldown: 30s → 60s");
    /// assert!(payments.explain().contains("for 60s"), "whoever holds it has the new settings");
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn apply(&self, config: &Config) -> Result<Changes, ConfigError> {
        // Held to the end: two that apply at once do so one after the other.
        let mut applied = self.inner.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = applied.as_ref().map_or_else(|| Config::empty().diff(config), |old| old.diff(config));
        for plan in config.plans() {
            self.apply_plan(plan)?;
        }
        for name in &changes.removed {
            self.remove(name);
        }
        *applied = Some(config.clone());
        Ok(changes)
    }

    fn apply_plan(&self, plan: &Plan) -> Result<(), ConfigError> {
        let name = plan.name();
        match (plan.keys_max(), self.guard(name), self.keyed(name)) {
            (None, Some(guard), _) => guard.reconfigure(plan.builder()).map(drop),
            (Some(max), _, Some(family)) => family.reconfigure(plan.builder(), max).map(drop),
            // One guard can't become a family, nor a family one guard: what each has learned is about something else.
            (keys_max, ..) => {
                let builder = self.of_this_registry(plan.builder());
                let entry = match keys_max {
                    None => Entry::One(builder.build()?),
                    Some(max) => Entry::Many(Keyed::new(builder, max)?),
                };
                // In one step: nobody finds nothing under a name that both configurations have.
                self.write().insert(name.into(), entry);
                Ok(())
            }
        }
    }

    /// An empty file is most likely one that is being written. Applied, it would take every guard away, and with them their
    /// circuits and budgets from those that come back a moment later.
    fn refuse_emptied(&self, config: Config) -> Result<Config, ConfigError> {
        let applied = self.inner.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let had_some = applied.as_ref().is_some_and(|applied| !applied.plans().is_empty());
        let mut problems = Problems::default();
        problems.refuse_if(had_some && config.plans().is_empty(), "guards", || {
            "there is none any more; to forget them all, apply an empty configuration".into()
        });
        problems.into_result("following a file", config)
    }

    /// The guards that the configuration lists under health, in its order.
    #[must_use]
    pub fn health(&self) -> Vec<Health> {
        let applied = self.inner.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = applied.iter().flat_map(Config::plans).filter(|plan| plan.is_in_health());
        listed
            .map(|plan| Health { name: plan.name().to_owned(), circuit: self.circuit_of(plan.name()) })
            .collect()
    }

    fn circuit_of(&self, name: &str) -> Option<State> {
        let of = |guard: &crate::Guard| guard.breaker().map(|circuit| circuit.state());
        if let Some(guard) = self.guard(name) {
            return of(&guard);
        }
        // The worst: open, half-open, then whatever there is.
        let rank = |state: &State| match state {
            State::Open | State::ForcedOpen => 2,
            State::HalfOpen => 1,
            _ => 0,
        };
        self.keyed(name)?.guards().iter().filter_map(of).max_by_key(rank)
    }

    /// Looks every while whether the files have changed, and applies them when they have, the first time at once. Runs until
    /// it is dropped; run it beside the program.
    ///
    /// `told` hears of each change, and of each file that could not be applied: then everything stays as it was. What is
    /// compared is what stands in the files, so a file that is replaced through a link is noticed too. Files in which there is
    /// no guard any more are not applied either: whoever writes a file in place empties it first.
    pub async fn follow(
        &self,
        loader: Loader,
        every: Duration,
        mut told: impl FnMut(Result<Changes, ConfigError>),
    ) -> Result<std::convert::Infallible, ConfigError> {
        let mut problems = Problems::default();
        problems.refuse_if(every < Duration::from_millis(10), "every", || {
            format!("looking every {every:?} is a busy loop; 5 s is usual")
        });
        problems.into_result("following a file", ())?;
        let clock = self.inner.clock.clone().unwrap_or_default();
        let mut seen = None;
        loop {
            let fresh = loader.clone();
            // Files are read where waiting holds up nobody.
            let read = tokio::task::spawn_blocking(move || {
                let print = fresh.fingerprint();
                (print, (Some(print) != seen).then(|| fresh.load()))
            });
            // It is only cancelled when the runtime ends, and then so is this.
            if let Ok((print, loaded)) = read.await {
                seen = Some(print);
                if let Some(loaded) = loaded {
                    let done = loaded.and_then(|config| self.refuse_emptied(config));
                    let done = done.and_then(|config| self.apply(&config));
                    // A file that was touched and says the same is no news.
                    if !done.as_ref().is_ok_and(Changes::is_empty) {
                        told(done);
                    }
                }
            }
            let mut timer = pin!(Timer::new());
            let at = clock.precise() + every;
            poll_fn(|cx| timer.as_mut().poll_until(at, &clock, cx)).await;
        }
    }
}
