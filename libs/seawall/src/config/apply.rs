//! A configuration put to work in a registry, at start and again while it runs.

use super::{Config, ConfigError, Plan};
use crate::registry::Registry;

impl Config {
    /// Brings a registry to this configuration: guards that it does not have are registered, and those that it has are
    /// changed while they run, without losing their circuits, windows, budgets and permits.
    ///
    /// Guards that are not in the configuration are left alone, because they may have been made in code. What only the
    /// former one had is in [`diff`](Config::diff), and goes by [`Registry::remove`].
    ///
    /// ```
    /// use seawall::{Registry, config::{Config, Format}};
    /// # let read = |text| Config::parse("seawall.yaml", text, Format::Yaml);
    /// let registry = Registry::new();
    /// let running = read("guards: {payments: {breaker: {}}, mail: {}}")?;
    /// running.apply(&registry)?;
    /// let payments = registry.guard("payments").expect("it is in the file");
    ///
    /// let newer = read("guards: {payments: {breaker: {cooldown: 60s}}}")?;
    /// newer.apply(&registry)?;
    /// for name in running.diff(&newer).removed {
    ///     registry.remove(&name);
    /// }
    /// assert!(payments.explain().contains("for 60s"), "whoever holds it has the new one");
    /// assert_eq!(registry.names(), ["payments"]);
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    pub fn apply(&self, registry: &Registry) -> Result<(), ConfigError> {
        self.plans().iter().try_for_each(|plan| apply(plan, registry))
    }
}

fn apply(plan: &Plan, registry: &Registry) -> Result<(), ConfigError> {
    let name = plan.name();
    match (plan.keys_max(), registry.guard(name), registry.keyed(name)) {
        (None, Some(guard), _) => guard.reconfigure(plan.builder()).map(drop),
        (Some(max), _, Some(family)) => family.reconfigure(plan.builder(), max).map(drop),
        // One guard can't become a family, nor a family one guard: what each has learned is about something else.
        (keys_max, ..) => {
            registry.remove(name);
            match keys_max {
                None => registry.register(plan.builder()).map(drop),
                Some(max) => registry.register_keyed(plan.builder(), max).map(drop),
            }
        }
    }
}
