//! What a delivery waits for, and until when.
//!
//! # Why one place for all of it?
//! A delivery waits in the store or in memory, for a person, for the circuit or for its turn, and each of these is known somewhere
//! else. The question why nothing is sent has the same answer everywhere, so it is decided here, for one delivery and for a
//! whole service.

use super::DeliveryState;
use crate::domain::circuit::CircuitState;
use crate::domain::time::{Millis, remaining};

/// What holds up all deliveries of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServiceGate {
    /// Whether an operator has paused the service.
    pub paused: bool,
    /// The state of a circuit that is not closed, and when its next probe is sent, if that is known.
    pub circuit: Option<(CircuitState, Option<Millis>)>,
    /// Until when the service asked the hub to wait.
    pub throttled: Option<Millis>,
    /// Until when a limit of the service's policy lets nothing pass.
    pub limited: Option<Millis>,
}

/// What a delivery waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Its service is paused.
    Service,
    /// Its rule is disabled.
    Rule,
    /// Others with the same ordering key are before it.
    Order,
    /// The circuit of its service is not closed.
    Circuit {
        /// The state of the circuit.
        state: CircuitState,
        /// When the next probe goes out, if that is known.
        next_probe: Option<Millis>,
    },
    /// The service asked for a pause.
    Peer {
        /// When the pause ends.
        until: Millis,
    },
    /// The rate limit or the bulkhead of its service lets nothing pass.
    Limit {
        /// When the limit is checked again.
        until: Millis,
    },
    /// It waits for its next attempt.
    Time {
        /// When the next attempt is due.
        at: Millis,
    },
    /// It waits for a free slot of its service.
    Turn,
}

impl Wait {
    /// Returns what a delivery in this state with this due time waits for; `None` if it has ended.
    #[must_use]
    pub fn of_delivery(state: DeliveryState, due: Millis, gate: &ServiceGate, now: Millis) -> Option<Wait> {
        let circuit = gate.circuit.map(|(state, next_probe)| Wait::Circuit { state, next_probe });
        let retry = Wait::Time { at: due };
        Some(match state {
            DeliveryState::Delivered | DeliveryState::DeadLettered => return None,
            _ if gate.paused => Wait::Service,
            DeliveryState::Held => Wait::Rule,
            DeliveryState::Blocked => Wait::Order,
            // It comes forward when the circuit closes.
            DeliveryState::Stalled => circuit.unwrap_or_else(|| if due > now { retry } else { gate.rest() }),
            // It keeps its own time, and meets the circuit then.
            DeliveryState::Waiting if due > now => match (circuit, gate.circuit) {
                (Some(circuit), Some((_, next_probe))) if next_probe.is_none_or(|probe| probe >= due) => {
                    circuit
                }
                _ => retry,
            },
            DeliveryState::Waiting | DeliveryState::Leased | DeliveryState::Queued => {
                circuit.unwrap_or_else(|| gate.rest())
            }
        })
    }

    /// Returns the word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Wait::Service => "service",
            Wait::Rule => "rule",
            Wait::Order => "order",
            Wait::Circuit { .. } => "circuit",
            Wait::Peer { .. } => "peer",
            Wait::Limit { .. } => "limit",
            Wait::Time { .. } => "time",
            Wait::Turn => "turn",
        }
    }

    /// All words, for the description of the API.
    pub const WORDS: [&'static str; 8] =
        ["service", "rule", "order", "circuit", "peer", "limit", "time", "turn"];

    /// Returns when the wait ends or is checked again, if that is known.
    #[must_use]
    pub const fn until(self) -> Option<Millis> {
        match self {
            Wait::Circuit { next_probe, .. } => next_probe,
            Wait::Peer { until } | Wait::Limit { until } | Wait::Time { at: until } => Some(until),
            Wait::Service | Wait::Rule | Wait::Order | Wait::Turn => None,
        }
    }

    /// Whether a person has to end the wait.
    #[must_use]
    pub const fn needs_person(self) -> bool {
        matches!(self, Wait::Service | Wait::Rule)
    }

    /// Describes the wait as of `now`, like `circuit open, next probe in 3 s`.
    #[must_use]
    pub fn explain(self, now: Millis) -> String {
        let left = |until: Millis| remaining(until.since(now));
        match self {
            Wait::Service => "service paused until it is resumed".into(),
            Wait::Rule => "rule disabled until it is enabled".into(),
            Wait::Order => "behind an earlier delivery with the same ordering key".into(),
            Wait::Circuit { state: CircuitState::ForcedOpen, .. } => {
                "circuit forced open until it is reset".into()
            }
            Wait::Circuit { state: CircuitState::HalfOpen, .. } => {
                "circuit half-open, a probe is in progress".into()
            }
            Wait::Circuit { next_probe, .. } => match next_probe {
                Some(at) if at > now => format!("circuit open, next probe in {}", left(at)),
                _ => "circuit open, next probe now".into(),
            },
            Wait::Peer { until } => format!("the service asked for a pause, next attempt in {}", left(until)),
            Wait::Limit { until } => {
                format!("rate limit or bulkhead is full, next attempt in {}", left(until))
            }
            Wait::Time { at } if at > now => format!("next attempt in {}", left(at)),
            Wait::Time { .. } => "next attempt now".into(),
            Wait::Turn => "next in line".into(),
        }
    }
}

impl ServiceGate {
    /// Returns what a delivery that could be sent now waits for, apart from the circuit.
    fn rest(&self) -> Wait {
        match (self.throttled, self.limited) {
            (Some(until), _) => Wait::Peer { until },
            (None, Some(until)) => Wait::Limit { until },
            (None, None) => Wait::Turn,
        }
    }

    /// Returns what holds up a service, from the number of its deliveries in memory and the next due time in the store.
    /// `rule_disabled` says whether one of its rules is disabled.
    #[must_use]
    pub fn of_service(
        &self,
        queued: usize,
        next_due: Option<Millis>,
        rule_disabled: bool,
        now: Millis,
    ) -> Wait {
        if queued > 0 {
            return Wait::of_delivery(DeliveryState::Leased, now, self, now).unwrap_or(Wait::Turn);
        }
        match next_due {
            _ if self.paused => Wait::Service,
            Some(due) => Wait::of_delivery(DeliveryState::Stalled, due, self, now).unwrap_or(Wait::Turn),
            None if rule_disabled => Wait::Rule,
            None => Wait::Order,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Millis = Millis(1_000_000);
    const OPEN: [DeliveryState; 6] = [
        DeliveryState::Leased,
        DeliveryState::Queued,
        DeliveryState::Waiting,
        DeliveryState::Stalled,
        DeliveryState::Blocked,
        DeliveryState::Held,
    ];

    fn after(seconds: u64) -> Millis {
        NOW + Duration::from_secs(seconds)
    }

    fn said(state: DeliveryState, due: Millis, gate: &ServiceGate) -> String {
        Wait::of_delivery(state, due, gate, NOW).unwrap().explain(NOW)
    }

    /// UI-2, HUB-5: a pause is what all of a service wait for, and an open circuit all that only it holds up.
    #[test]
    fn ui_2_what_stops_a_service_is_what_its_deliveries_wait_for() {
        let paused = ServiceGate { paused: true, ..ServiceGate::default() };
        for state in OPEN {
            assert_eq!(Wait::of_delivery(state, NOW, &paused, NOW), Some(Wait::Service));
        }
        let open =
            ServiceGate { circuit: Some((CircuitState::Open, Some(after(3)))), ..ServiceGate::default() };
        for state in
            [DeliveryState::Leased, DeliveryState::Queued, DeliveryState::Stalled, DeliveryState::Waiting]
        {
            assert_eq!(said(state, NOW, &open), "circuit open, next probe in 3 s", "{state:?}");
        }
        assert_eq!(said(DeliveryState::Held, NOW, &open), "rule disabled until it is enabled");
        assert_eq!(said(DeliveryState::Waiting, after(2), &open), "circuit open, next probe in 3 s");
        assert_eq!(
            said(DeliveryState::Waiting, after(7_200), &open),
            "next attempt in 2 h",
            "later than the probe"
        );
        for ended in [DeliveryState::Delivered, DeliveryState::DeadLettered] {
            assert_eq!(Wait::of_delivery(ended, NOW, &paused, NOW), None);
        }
    }

    /// UI-2: with a closed circuit nobody is told that the peer is down.
    #[test]
    fn ui_2_with_a_closed_circuit_a_failure_waits_for_its_next_attempt() {
        let closed = ServiceGate::default();
        assert_eq!(said(DeliveryState::Stalled, after(30), &closed), "next attempt in 30 s");
        assert_eq!(said(DeliveryState::Stalled, NOW, &closed), "next in line");
        let limited = ServiceGate { limited: Some(NOW + Duration::from_millis(200)), ..closed };
        assert_eq!(
            said(DeliveryState::Leased, NOW, &limited),
            "rate limit or bulkhead is full, next attempt in under 1 s"
        );
        let asked = ServiceGate { throttled: Some(after(400)), ..limited };
        assert_eq!(
            said(DeliveryState::Queued, NOW, &asked),
            "the service asked for a pause, next attempt in 7 min"
        );
    }

    /// UI-2: a service says what the next of its deliveries waits for.
    #[test]
    fn ui_2_a_service_waits_for_what_its_next_delivery_waits_for() {
        let closed = ServiceGate::default();
        assert_eq!(closed.of_service(3, None, false, NOW), Wait::Turn);
        assert_eq!(closed.of_service(0, Some(after(9)), false, NOW), Wait::Time { at: after(9) });
        assert_eq!(closed.of_service(0, None, true, NOW), Wait::Rule);
        assert_eq!(closed.of_service(0, None, false, NOW), Wait::Order);
        let forced = ServiceGate { circuit: Some((CircuitState::ForcedOpen, None)), ..closed };
        let wait = forced.of_service(0, Some(after(9)), true, NOW);
        assert_eq!(wait.explain(NOW), "circuit forced open until it is reset");
        assert_eq!(ServiceGate { paused: true, ..forced }.of_service(3, None, false, NOW), Wait::Service);
        assert_eq!((Wait::Service.until(), Wait::Service.needs_person()), (None, true));
        assert!(Wait::WORDS.contains(&wait.word()));
    }
}
