//! What is known of a circuit from outside.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::word::Place;

/// Where a circuit stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum State {
    /// All calls pass.
    Closed,
    /// Closed again not long ago: a growing share of the calls passes.
    Ramping,
    /// No call passes.
    Open,
    /// Some calls pass as probes.
    HalfOpen,
    /// A person said that no call passes.
    ForcedOpen,
    /// A person said that all calls pass, whatever comes back.
    ForcedClosed,
    /// A person said that the circuit looks at nothing.
    Disabled,
}

impl From<Place> for State {
    fn from(place: Place) -> Self {
        match place {
            Place::Closed => State::Closed,
            Place::Ramping => State::Ramping,
            Place::Open => State::Open,
            Place::HalfOpen => State::HalfOpen,
            Place::ForcedOpen => State::ForcedOpen,
            Place::ForcedClosed => State::ForcedClosed,
            Place::Disabled => State::Disabled,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Closed => "closed",
            State::Ramping => "closed (ramping)",
            State::Open => "open",
            State::HalfOpen => "half-open",
            State::ForcedOpen => "forced open",
            State::ForcedClosed => "forced closed",
            State::Disabled => "disabled",
        })
    }
}

/// What a restart should not forget of a circuit. Plain data, to be stored in whatever way one stores things.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Where it stood.
    pub state: State,
    /// When the cooldown of an open circuit ends, in wall time, which is all that two processes have in common.
    pub until: Option<SystemTime>,
    /// How often it opened without much health in between.
    pub trips: u32,
    /// Why a person last moved it.
    pub reason: Option<Arc<str>>,
}

impl Snapshot {
    /// Creates the snapshot of a circuit in this state that never opened. Set the fields to restore the rest.
    #[must_use]
    pub fn new(state: State) -> Self {
        Snapshot { state, until: None, trips: 0, reason: None }
    }
}
