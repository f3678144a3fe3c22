//! What a circuit tells of itself, to whoever it belongs to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::snapshot::State;
use super::word::Place;

/// Something that happened to a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// For this long, or until somebody resets it.
    Opened {
        cooldown: Option<Duration>,
    },
    HalfOpened,
    Closed,
    /// Forced closed, or disabled.
    Bypassed,
    /// A call took longer than the threshold.
    Slow {
        took: Duration,
    },
    /// An outcome came after the circuit had moved on.
    Late,
}

impl Sign {
    /// What a transition is a sign of, if it is one.
    pub(super) fn of_move(from: Place, to: Place, cooldown: impl FnOnce() -> Duration) -> Option<Self> {
        match to {
            _ if from == to => None,
            Place::Open => Some(Sign::Opened { cooldown: Some(cooldown()) }),
            Place::ForcedOpen => Some(Sign::Opened { cooldown: None }),
            Place::HalfOpen => Some(Sign::HalfOpened),
            // From ramping to closed nothing is decided: the circuit has been closed since the ramp began.
            Place::Closed | Place::Ramping => (from != Place::Ramping).then_some(Sign::Closed),
            Place::ForcedClosed | Place::Disabled => Some(Sign::Bypassed),
        }
    }
}

/// From where to where a circuit moved.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(seawall_loom, expect(dead_code, reason = "only guards tell of it"))]
pub(crate) struct Move<'a> {
    pub(crate) from: State,
    pub(crate) to: State,
    /// The reason that a person gave, where a person moved it.
    pub(crate) reason: Option<&'a str>,
}

type Tell = dyn Fn(Sign, Option<Move<'_>>) + Send + Sync;

/// Who is told. A circuit on its own has nobody.
#[derive(Clone)]
pub(crate) struct Witness(Arc<Tell>);

impl Witness {
    #[cfg(not(seawall_loom))]
    pub(crate) fn new(tell: impl Fn(Sign, Option<Move<'_>>) + Send + Sync + 'static) -> Self {
        Witness(Arc::new(tell))
    }

    pub(super) fn tell(&self, sign: Sign) {
        (self.0)(sign, None);
    }

    pub(super) fn tell_move(&self, sign: Sign, moved: Move<'_>) {
        (self.0)(sign, Some(moved));
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}
