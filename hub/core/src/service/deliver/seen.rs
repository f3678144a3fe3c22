//! Where a circuit stands, as far as a restart should know it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use seawall::breaker::{CircuitBreaker, Snapshot, State as GuardState};

use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;

/// Where a circuit stands: when two of these differ, it has moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    state: CircuitState,
    /// One that opens again has another end, and nobody may have seen it half-open in between.
    opened: u64,
    /// Of one that a person has moved.
    reason: Option<Arc<str>>,
}

impl Default for Seen {
    fn default() -> Self {
        Seen { state: CircuitState::Closed, opened: 0, reason: None }
    }
}

/// Where a circuit stands, in the hub's words.
pub(in crate::service) fn state_of(breaker: &CircuitBreaker) -> CircuitState {
    match breaker.state() {
        GuardState::Closed | GuardState::Ramping => CircuitState::Closed,
        GuardState::Open => CircuitState::Open,
        GuardState::HalfOpen => CircuitState::HalfOpen,
        GuardState::ForcedOpen => CircuitState::ForcedOpen,
        GuardState::ForcedClosed | GuardState::Disabled => CircuitState::ForcedClosed,
        // The library may get more states. Until the hub knows one, it shows the circuit as one that lets calls pass.
        _ => CircuitState::Closed,
    }
}

/// A circuit that lets nothing pass, and when its next probe goes out, if that is known.
pub(super) fn stopped(breaker: &CircuitBreaker, now: Millis) -> Option<(CircuitState, Option<Millis>)> {
    let state = state_of(breaker);
    match state {
        CircuitState::Closed | CircuitState::ForcedClosed => None,
        CircuitState::HalfOpen | CircuitState::ForcedOpen => Some((state, None)),
        CircuitState::Open => {
            let until = breaker.snapshot().until.map(wall_millis);
            Some((state, Some(until.map_or(now, |until| until.max(now)))))
        }
    }
}

fn wall_millis(time: SystemTime) -> Millis {
    Millis(0) + time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Seen {
    pub(super) fn of(breaker: &CircuitBreaker) -> Self {
        let state = state_of(breaker);
        let forced = matches!(state, CircuitState::ForcedOpen | CircuitState::ForcedClosed);
        Seen {
            state,
            opened: if state == CircuitState::Open { breaker.counts().opened } else { 0 },
            reason: if forced { breaker.reason() } else { None },
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, CircuitState::Closed | CircuitState::ForcedClosed)
    }

    /// As it is kept, without the reason.
    pub(super) fn kept(&self, breaker: &CircuitBreaker, service: Slug, now: Millis) -> Circuit {
        let Snapshot { until, trips, .. } = breaker.snapshot();
        Circuit {
            service,
            state: self.state,
            until: until.map(wall_millis),
            trips,
            reason: None,
            changed: now,
        }
    }
}

/// As the breaker takes up what was kept.
pub(super) fn snapshot(circuit: &Circuit) -> Snapshot {
    let time = |millis: Millis| UNIX_EPOCH + Duration::from_millis(u64::try_from(millis.0).unwrap_or(0));
    let mut snapshot = Snapshot::new(match circuit.state {
        CircuitState::Closed => GuardState::Closed,
        CircuitState::Open => GuardState::Open,
        CircuitState::HalfOpen => GuardState::HalfOpen,
        CircuitState::ForcedOpen => GuardState::ForcedOpen,
        CircuitState::ForcedClosed => GuardState::ForcedClosed,
    });
    snapshot.until = circuit.until.map(time);
    snapshot.trips = circuit.trips;
    let forced = matches!(circuit.state, CircuitState::ForcedOpen | CircuitState::ForcedClosed);
    snapshot.reason = circuit.reason.as_deref().filter(|_| forced).map(Arc::from);
    snapshot
}
