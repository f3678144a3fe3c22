//! Who makes the trouble.

use super::config::Chaos;
use super::machine::{Rules, Trouble, trouble};
use crate::chance::Chance;
use crate::config::ConfigError;
use crate::sync::{AtomicU32, Ordering};
use crate::versions::Versions;

/// Makes trouble in a guard. Unless it was built with [`enabled(false)`](Chaos::enabled) it is on, and it can be switched
/// while it runs.
#[derive(Debug)]
pub struct Injector {
    versions: Versions<Version>,
    chance: Chance,
    on: AtomicU32,
}

#[derive(Debug)]
struct Version {
    rules: Rules,
    text: String,
    enabled: bool,
}

impl Version {
    fn new(chaos: &Chaos) -> Self {
        Version { rules: chaos.rules(), text: chaos.to_string(), enabled: chaos.enabled }
    }
}

impl Injector {
    pub(crate) fn new(chaos: &Chaos, seed: u64) -> Self {
        Injector {
            versions: Versions::new(Version::new(chaos)),
            chance: Chance::seeded(seed),
            on: AtomicU32::new(u32::from(chaos.enabled)),
        }
    }

    /// On or off, from the next attempt on.
    pub fn switch(&self, on: bool) {
        self.on.store(u32::from(on), Ordering::Release);
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire) == 1
    }

    /// Changes the trouble. Somebody who has switched it by hand is overruled only by a configuration that says
    /// otherwise than the one before.
    pub(crate) fn reconfigure(&self, chaos: &Chaos) -> Result<(), ConfigError> {
        let published = self.versions.publish(|old| {
            if old.enabled != chaos.enabled {
                self.switch(chaos.enabled);
            }
            Version::new(chaos)
        });
        published.map_err(|too_many| too_many.refusal("chaos", "chaos"))
    }

    pub(crate) fn draw(&self) -> Trouble {
        if self.is_on() { trouble(self.chance.next(), &self.versions.newest().rules) } else { Trouble::None }
    }

    pub(crate) fn explain(&self) -> &str {
        &self.versions.newest().text
    }
}
