//! Who makes the trouble.

use super::config::Chaos;
use super::machine::{Rules, Trouble, trouble};
use crate::chance::Chance;
use crate::sync::{AtomicU32, Ordering};

/// Makes trouble in a guard. Unless it was built [switched off](Chaos::switched_off) it is on, and it can be switched while it runs.
#[derive(Debug)]
pub struct Injector {
    rules: Rules,
    text: String,
    chance: Chance,
    on: AtomicU32,
}

impl Injector {
    pub(crate) fn new(chaos: &Chaos, seed: u64) -> Self {
        Injector {
            rules: chaos.rules(),
            text: chaos.to_string(),
            chance: Chance::seeded(seed),
            on: AtomicU32::new(u32::from(chaos.starts_on)),
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

    pub(crate) fn draw(&self) -> Trouble {
        if self.is_on() { trouble(self.chance.next(), &self.rules) } else { Trouble::None }
    }

    pub(crate) fn explain(&self) -> &str {
        &self.text
    }
}
