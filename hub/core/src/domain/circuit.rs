//! A circuit as it is kept, so that a restart does not forget an outage.

use super::slug::Slug;
use super::time::Millis;

/// A circuit as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    /// Of which service.
    pub service: Slug,
    /// Where it stands.
    pub state: CircuitState,
    /// Until when an open one stays so.
    pub until: Option<Millis>,
    /// How often it opened without much health in between.
    pub trips: u32,
    /// Why it stands there: what a person said who has moved it, or what the peer did that it opened for.
    pub reason: Option<String>,
    /// Since when. An open one that is probed in vain has been so since it opened first.
    pub changed: Millis,
}

/// Where a circuit stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CircuitState {
    /// All pass.
    Closed,
    /// None pass.
    Open,
    /// Some pass, to see.
    HalfOpen,
    /// A person said that none pass.
    ForcedOpen,
    /// A person said that all pass.
    ForcedClosed,
}

impl CircuitState {
    /// All of them.
    pub const ALL: [CircuitState; 5] = [
        CircuitState::Closed,
        CircuitState::Open,
        CircuitState::HalfOpen,
        CircuitState::ForcedOpen,
        CircuitState::ForcedClosed,
    ];

    /// In one word that does not change.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            CircuitState::Closed => "closed",
            CircuitState::Open => "open",
            CircuitState::HalfOpen => "halfOpen",
            CircuitState::ForcedOpen => "forcedOpen",
            CircuitState::ForcedClosed => "forcedClosed",
        }
    }

    /// The other way round.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}
