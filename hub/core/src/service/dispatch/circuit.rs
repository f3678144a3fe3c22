//! The circuits of services: what opens them, and what a restart should know of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use seawall::breaker::{CircuitBreaker, Snapshot, State as GuardState};
use seawall::{Error, Fault, Kind};

use super::DispatcherInner;
use super::lane::Lane;
use super::telemetry::circuit_moved;
use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::slug::Slug;
use crate::domain::time::Millis;
use crate::port::store::{Change, CircuitCause, UnitOfWork, UnitStore, WritePriority};
use crate::port::transport::{SendError, Transport};
use crate::service::audit;
use crate::service::context::Context;

/// An observed state of a circuit. Two that differ mean that it has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CircuitSnapshot {
    state: CircuitState,
    /// The number of openings. A circuit that opens again may never have been observed as half-open in between.
    opened: u64,
    /// The reason of a manual change.
    reason: Option<Arc<str>>,
}

impl Default for CircuitSnapshot {
    fn default() -> Self {
        CircuitSnapshot { state: CircuitState::Closed, opened: 0, reason: None }
    }
}

/// Returns the state of a circuit breaker in the words of the hub.
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

/// Returns the state of a circuit that is not closed, and when its next probe is sent, if that is known.
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

impl CircuitSnapshot {
    pub(super) fn of(breaker: &CircuitBreaker) -> Self {
        let state = state_of(breaker);
        let forced = matches!(state, CircuitState::ForcedOpen | CircuitState::ForcedClosed);
        CircuitSnapshot {
            state,
            opened: if state == CircuitState::Open { breaker.counts().opened } else { 0 },
            reason: if forced { breaker.reason() } else { None },
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, CircuitState::Closed | CircuitState::ForcedClosed)
    }

    /// Converts the state for the store, without the reason.
    pub(super) fn to_stored(&self, breaker: &CircuitBreaker, service: Slug, now: Millis) -> Circuit {
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

/// Converts a stored circuit for the breaker.
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

impl Lane {
    /// Remembers a failure that counts for the circuit.
    pub(super) fn note_failure(&self, what: Option<&str>) {
        let Some(what) = what else { return };
        *self.last_failure.lock() = Some(what.to_owned());
    }

    /// Remembers the failure of a gateway call, if it counts for the circuit.
    pub(super) fn note_call<A>(
        &self,
        called: &Result<A, Error<SendError>>,
        fault: impl FnOnce(&A) -> Option<Fault>,
    ) {
        match called {
            Ok(answer) => {
                let fault = fault(answer).filter(Fault::counts);
                self.note_failure(fault.map(|fault| fault.to_string()).as_deref());
            }
            Err(error) if error.kind() == Kind::Rejected => {}
            Err(error) if error.last().is_some_and(|last| !last.fault.counts()) => {}
            Err(error) => {
                let said = error.last().map_or_else(|| error.to_string(), |last| last.error.clone());
                self.note_failure(Some(&said));
            }
        }
    }

    /// Returns the last failure that counted for the circuit since it last closed.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }

    /// Returns the reason for the state of the circuit: what an operator wrote, or the last failure.
    pub(super) fn state_reason(&self) -> Option<String> {
        let breaker = self.guard.breaker()?;
        match state_of(breaker) {
            CircuitState::ForcedOpen | CircuitState::ForcedClosed => {
                breaker.reason().map(|reason| reason.to_string())
            }
            CircuitState::Open | CircuitState::HalfOpen => self.last_failure(),
            CircuitState::Closed => None,
        }
    }

    /// Returns the state of the circuit and its reason, if it has changed since the last call. When it closes, deliveries that
    /// waited for recovery resume.
    pub(super) fn circuit_change(&self, now: Millis, command: Option<&str>) -> Option<(Circuit, bool)> {
        let breaker = self.guard.breaker()?;
        let seen = CircuitSnapshot::of(breaker);
        let mut state = self.lock();
        if state.circuit == seen {
            return None;
        }
        let closes = !state.circuit.is_closed() && seen.is_closed();
        let mut circuit = seen.to_stored(breaker, self.service().name.clone(), now);
        circuit.reason = command.map(ToOwned::to_owned).or_else(|| self.state_reason());
        if seen.is_closed() {
            *self.last_failure.lock() = None;
        }
        state.circuit = seen;
        if closes {
            state.resume_waiting(now);
        }
        Some((circuit, closes))
    }

    /// Returns when the circuit last closed.
    pub(super) fn circuit_closed(&self) -> Option<Millis> {
        self.lock().circuit_closed
    }

    /// Restores the state of the circuit from an earlier process, which may have ended before all waiting deliveries resumed.
    pub(super) fn restore(&self, circuit: &Circuit, now: Millis) {
        let Some(breaker) = self.guard.breaker() else { return };
        breaker.restore(&snapshot(circuit));
        if matches!(circuit.state, CircuitState::Open | CircuitState::HalfOpen) {
            self.note_failure(circuit.reason.as_deref());
        }
        let mut state = self.lock();
        state.circuit = CircuitSnapshot::of(breaker);
        if state.circuit.is_closed() {
            state.resume_waiting(now);
        }
    }
}

impl<S: UnitStore, T: Transport> DispatcherInner<S, T> {
    /// Stores the state of a circuit that has changed by itself. If that fails, the next change is stored; what is lost is how
    /// long it has been so.
    pub(super) async fn observe(&self, lane: &Lane) {
        if let Some(change) = self.circuit_change(lane, None) {
            let _ = self.store.commit(WritePriority::Admin, UnitOfWork::of(change)).await;
        }
    }

    /// Stores that an operator has changed a circuit, and the reason.
    pub(super) async fn store_command(&self, cx: &Context, lane: &Lane, reason: &str) {
        let change = self.circuit_change(lane, Some(reason));
        let entry = match &change {
            Some(change) => audit::audit(change, cx),
            // A command that leaves the state as it is has an entry too: it has cleared the statistics.
            None => lane.guard.breaker().map(|breaker| {
                let target = audit::circuit_target(&lane.service().name, state_of(breaker));
                audit::entry(audit::MOVE_CIRCUIT, target, cx)
            }),
        };
        let changes = change.into_iter().chain(entry.map(Change::Audit)).collect();
        let _ = self.store.commit(WritePriority::Admin, UnitOfWork { changes }).await;
    }

    /// Returns the change of a circuit to store. A probe in progress is part of the outage and not stored.
    fn circuit_change(&self, lane: &Lane, command: Option<&str>) -> Option<Change> {
        let (circuit, closes) = lane.circuit_change(self.now(), command)?;
        circuit_moved(&circuit);
        if closes {
            self.refill.notify_one();
        }
        let cause = if command.is_some() { CircuitCause::Command } else { CircuitCause::Breaker };
        (circuit.state != CircuitState::HalfOpen).then_some(Change::PutCircuit { circuit, cause })
    }
}
