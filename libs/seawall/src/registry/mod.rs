//! Guards by name, in one place.
#![doc = ""]
#![doc = include_str!("../../docs/registry.md")]

#[cfg(feature = "config")]
mod apply;
#[cfg(feature = "macros")]
mod global;
mod hook;
mod keyed;

#[cfg(feature = "config")]
pub use apply::Health;
pub use keyed::Keyed;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::breaker::State;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};
#[cfg(feature = "tokio")]
use crate::event::Events;
use crate::event::Subscribers;
use crate::guard::{Guard, GuardBuilder};
use crate::telemetry::Telemetry;

/// Guards by name. A handle: clones share everything.
///
/// ```
/// use seawall::{Breaker, Guard, Registry, secs};
/// let registry = Registry::new();
/// registry.register(Guard::builder("payments").breaker(Breaker::default()))?;
/// let payments = registry.guard("payments").expect("it was registered above");
/// assert_eq!(registry.names(), ["payments"]);
/// # assert_eq!(payments.name(), "payments");
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    entries: RwLock<BTreeMap<Box<str>, Entry>>,
    subscribers: Arc<Subscribers>,
    telemetry: Telemetry,
    clock: Option<Clock>,
    pause_tolerance: Option<Duration>,
    /// The configuration that was applied last.
    #[cfg(feature = "config")]
    applied: std::sync::Mutex<Option<crate::config::Config>>,
}

#[derive(Clone)]
enum Entry {
    One(Guard),
    Many(Keyed),
}

/// A registry in the making.
#[must_use = "a registry is made by `build`"]
#[derive(Clone, Debug, Default)]
pub struct RegistryBuilder {
    telemetry: Telemetry,
    clock: Option<Clock>,
    pause_tolerance: Option<Duration>,
}

impl RegistryBuilder {
    /// All its guards write a log through `tracing`.
    #[cfg(feature = "tracing")]
    pub fn log(mut self, log: crate::telemetry::Log) -> Self {
        self.telemetry.log = Some(log);
        self
    }

    /// All attempts in its guards have a span; see [`GuardBuilder::attempt_spans`].
    #[cfg(feature = "tracing")]
    pub fn attempt_spans(mut self) -> Self {
        self.telemetry.attempt_spans = true;
        self
    }

    /// All its guards record metrics. Install the recorder first: guards register with the one that is there when they
    /// are made.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self) -> Self {
        self.telemetry.metrics = true;
        self
    }

    /// The clock that all its guards go by.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Timeouts that the process itself has missed are not counted against any peer; see [`GuardBuilder::pause_tolerance`].
    pub fn pause_tolerance(mut self, tolerance: Duration) -> Self {
        self.pause_tolerance = Some(tolerance);
        self
    }

    /// Makes the registry, without any guard yet.
    #[must_use]
    pub fn build(self) -> Registry {
        Registry {
            inner: Arc::new(Inner {
                entries: RwLock::default(),
                subscribers: Arc::default(),
                telemetry: self.telemetry,
                clock: self.clock,
                pause_tolerance: self.pause_tolerance,
                #[cfg(feature = "config")]
                applied: std::sync::Mutex::default(),
            }),
        }
    }
}

impl Default for Registry {
    fn default() -> Self {
        Registry::builder().build()
    }
}

impl Registry {
    /// A registry without guards, log and metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// Makes a guard and keeps it under its name, which must be free.
    pub fn register(&self, builder: GuardBuilder) -> Result<Guard, ConfigError> {
        let guard = self.of_this_registry(builder).build()?;
        self.insert(guard.name(), Entry::One(guard.clone()))?;
        Ok(guard)
    }

    /// Makes a family of guards, one for each key (host, tenant) that is asked for and at most `max` at a time, and keeps
    /// it under the builder's name, which must be free.
    pub fn register_keyed(&self, builder: GuardBuilder, max: usize) -> Result<Keyed, ConfigError> {
        let keyed = Keyed::new(self.of_this_registry(builder), max)?;
        self.insert(keyed.name(), Entry::Many(keyed.clone()))?;
        Ok(keyed)
    }

    fn of_this_registry(&self, builder: GuardBuilder) -> GuardBuilder {
        let Inner { subscribers, telemetry, clock, pause_tolerance, .. } = &*self.inner;
        builder.in_registry(subscribers, telemetry, clock.as_ref(), *pause_tolerance)
    }

    fn insert(&self, name: &str, entry: Entry) -> Result<(), ConfigError> {
        let mut entries = self.write();
        let mut problems = Problems::default();
        problems.refuse_if(entries.contains_key(name), "name", || {
            "there is one of this name already; take it with `guard(..)` or `keyed(..)`, or choose another name"
                .into()
        });
        problems.into_result(format!("guard `{name}`"), ())?;
        entries.insert(name.into(), entry);
        Ok(())
    }

    /// The guard of this name, if there is one.
    #[must_use]
    pub fn guard(&self, name: &str) -> Option<Guard> {
        match self.read().get(name)? {
            Entry::One(guard) => Some(guard.clone()),
            Entry::Many(_) => None,
        }
    }

    /// The family of guards of this name, if there is one.
    #[must_use]
    pub fn keyed(&self, name: &str) -> Option<Keyed> {
        match self.read().get(name)? {
            Entry::One(_) => None,
            Entry::Many(keyed) => Some(keyed.clone()),
        }
    }

    /// All its guards in the order of their names, those of families included.
    #[must_use]
    pub fn guards(&self) -> Vec<Guard> {
        let entries: Vec<Entry> = self.read().values().cloned().collect();
        let guards = entries.into_iter().flat_map(|entry| match entry {
            Entry::One(guard) => vec![guard],
            Entry::Many(keyed) => keyed.guards(),
        });
        guards.collect()
    }

    /// The names of its guards and families, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.read().keys().map(|name| name.clone().into_string()).collect()
    }

    /// Forgets the guard or family of this name. Whoever holds it can go on using it. Says whether there was one.
    #[expect(clippy::must_use_candidate, reason = "that it is gone is what was wanted")]
    pub fn remove(&self, name: &str) -> bool {
        self.write().remove(name).is_some()
    }

    /// The circuits that are not closed, with the names of their guards: what is broken now.
    #[must_use]
    pub fn troubled(&self) -> Vec<(String, State)> {
        let state = |guard: &Guard| guard.breaker().map(|circuit| circuit.state());
        let guards = self.guards().into_iter();
        guards
            .filter_map(|guard| Some((guard.name().to_owned(), state(&guard)?)))
            .filter(|(_, state)| *state != State::Closed)
            .collect()
    }

    /// Listens to what happens in all its guards, those that come later included. See
    /// [`Guard::subscribe`](crate::Guard::subscribe).
    #[cfg(feature = "tokio")]
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Events {
        self.inner.subscribers.add(capacity)
    }

    /// Records what its guards are now (circuits, places in use, budgets), as opposed to what happens in them, which is
    /// recorded when it happens. Call it before each scrape. Families are left out: their names are not bounded.
    #[cfg(feature = "metrics")]
    pub fn record_gauges(&self) {
        let guards: Vec<Guard> = self
            .read()
            .values()
            .filter_map(|entry| if let Entry::One(guard) = entry { Some(guard.clone()) } else { None })
            .collect();
        guards.iter().for_each(crate::telemetry::record_gauges);
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Box<str>, Entry>> {
        self.inner.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Box<str>, Entry>> {
        self.inner.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("names", &self.names()).finish_non_exhaustive()
    }
}
