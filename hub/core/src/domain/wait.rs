//! What a delivery waits for, and until when.
//!
//! # Why one place for all of it?
//! A delivery waits in the store or in memory, for a person, for the circuit or for its turn, and each of these is known somewhere
//! else. Whoever asks why nothing is sent gets the same answer everywhere, so it is decided here, for one delivery and for a
//! whole service.

use std::fmt;
use std::time::Duration;

use super::circuit::CircuitState;
use super::delivery::State;
use super::time::Millis;

/// What holds up all deliveries of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Gate {
    /// A person has paused the service.
    pub paused: bool,
    /// The state of a circuit that lets nothing pass, and when its next probe goes out, if that is known.
    pub circuit: Option<(CircuitState, Option<Millis>)>,
    /// The service asked for a pause until then.
    pub throttled: Option<Millis>,
    /// A limit of the service's policy lets nothing pass until then.
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
        /// When that ends.
        until: Millis,
    },
    /// The rate limit or the bulkhead of its service lets nothing pass.
    Limit {
        /// When it is looked at again.
        until: Millis,
    },
    /// Its next attempt.
    Time {
        /// When that is.
        at: Millis,
    },
    /// Its turn: it is sent as soon as its service has room.
    Turn,
}

impl Wait {
    /// What a delivery in this state waits for, that is due then; nothing if it has ended.
    #[must_use]
    pub fn of_delivery(state: State, due: Millis, gate: &Gate, now: Millis) -> Option<Wait> {
        let circuit = gate.circuit.map(|(state, next_probe)| Wait::Circuit { state, next_probe });
        let retry = Wait::Time { at: due };
        Some(match state {
            State::Delivered | State::DeadLettered => return None,
            _ if gate.paused => Wait::Service,
            State::Held => Wait::Rule,
            State::Blocked => Wait::Order,
            // It comes forward when the circuit closes.
            State::Stalled => circuit.unwrap_or_else(|| if due > now { retry } else { gate.rest() }),
            // It keeps its own time, and meets the circuit then.
            State::Waiting if due > now => match (circuit, gate.circuit) {
                (Some(circuit), Some((_, next_probe))) if next_probe.is_none_or(|probe| probe >= due) => {
                    circuit
                }
                _ => retry,
            },
            State::Waiting | State::Leased | State::Queued => circuit.unwrap_or_else(|| gate.rest()),
        })
    }

    /// The word of the API.
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

    /// When it ends by itself or is looked at again, if that is known.
    #[must_use]
    pub const fn until(self) -> Option<Millis> {
        match self {
            Wait::Circuit { next_probe, .. } => next_probe,
            Wait::Peer { until } | Wait::Limit { until } | Wait::Time { at: until } => Some(until),
            Wait::Service | Wait::Rule | Wait::Order | Wait::Turn => None,
        }
    }

    /// Whether a person has to end it.
    #[must_use]
    pub const fn needs_person(self) -> bool {
        matches!(self, Wait::Service | Wait::Rule)
    }

    /// In words, as of `now`: `circuit open, next probe in 3 s`.
    #[must_use]
    pub fn explain(self, now: Millis) -> String {
        let left = |until: Millis| Left(until.since(now));
        match self {
            Wait::Service => "service paused, until somebody resumes it".into(),
            Wait::Rule => "rule disabled, until somebody enables it".into(),
            Wait::Order => "behind an earlier delivery with the same ordering key".into(),
            Wait::Circuit { state: CircuitState::ForcedOpen, .. } => {
                "circuit forced open, until somebody resets it".into()
            }
            Wait::Circuit { state: CircuitState::HalfOpen, .. } => {
                "circuit half-open, a probe is under way".into()
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

impl Gate {
    /// What a delivery that could be sent now waits for, apart from the circuit.
    fn rest(&self) -> Wait {
        match (self.throttled, self.limited) {
            (Some(until), _) => Wait::Peer { until },
            (None, Some(until)) => Wait::Limit { until },
            (None, None) => Wait::Turn,
        }
    }

    /// What holds up the deliveries of a service of which so many are in memory and the next in the store is due then.
    /// `rule_disabled` says whether a rule that sends to it is.
    #[must_use]
    pub fn of_service(
        &self,
        queued: usize,
        next_due: Option<Millis>,
        rule_disabled: bool,
        now: Millis,
    ) -> Wait {
        if queued > 0 {
            return Wait::of_delivery(State::Leased, now, self, now).unwrap_or(Wait::Turn);
        }
        match next_due {
            _ if self.paused => Wait::Service,
            Some(due) => Wait::of_delivery(State::Stalled, due, self, now).unwrap_or(Wait::Turn),
            None if rule_disabled => Wait::Rule,
            None => Wait::Order,
        }
    }
}

/// A time that is left, as coarse as it may be read: `under 1 s`, `3 s`, `4 min`, `2 h`, `3 d`.
struct Left(Duration);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_millis().div_ceil(1_000);
        match seconds {
            0..=1 => write!(f, "{}", if self.0 < Duration::from_secs(1) { "under 1 s" } else { "1 s" }),
            2..=119 => write!(f, "{seconds} s"),
            120..=7_199 => write!(f, "{} min", seconds.div_ceil(60)),
            7_200..=172_799 => write!(f, "{} h", seconds.div_ceil(3_600)),
            _ => write!(f, "{} d", seconds.div_ceil(86_400)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000);
    const OPEN: [State; 6] =
        [State::Leased, State::Queued, State::Waiting, State::Stalled, State::Blocked, State::Held];

    fn after(seconds: u64) -> Millis {
        NOW + Duration::from_secs(seconds)
    }

    fn said(state: State, due: Millis, gate: &Gate) -> String {
        Wait::of_delivery(state, due, gate, NOW).unwrap().explain(NOW)
    }

    /// UI-2, HUB-5: a pause is what all of a service wait for, and an open circuit all that only it holds up.
    #[test]
    fn ui_2_what_stops_a_service_is_what_its_deliveries_wait_for() {
        let paused = Gate { paused: true, ..Gate::default() };
        for state in OPEN {
            assert_eq!(Wait::of_delivery(state, NOW, &paused, NOW), Some(Wait::Service));
        }
        let open = Gate { circuit: Some((CircuitState::Open, Some(after(3)))), ..Gate::default() };
        for state in [State::Leased, State::Queued, State::Stalled, State::Waiting] {
            assert_eq!(said(state, NOW, &open), "circuit open, next probe in 3 s", "{state:?}");
        }
        assert_eq!(said(State::Held, NOW, &open), "rule disabled, until somebody enables it");
        assert_eq!(said(State::Waiting, after(2), &open), "circuit open, next probe in 3 s");
        assert_eq!(said(State::Waiting, after(7_200), &open), "next attempt in 2 h", "later than the probe");
        for ended in [State::Delivered, State::DeadLettered] {
            assert_eq!(Wait::of_delivery(ended, NOW, &paused, NOW), None);
        }
    }

    /// UI-2: with a closed circuit nobody is told that the peer is down.
    #[test]
    fn ui_2_with_a_closed_circuit_a_failure_waits_for_its_next_attempt() {
        let closed = Gate::default();
        assert_eq!(said(State::Stalled, after(30), &closed), "next attempt in 30 s");
        assert_eq!(said(State::Stalled, NOW, &closed), "next in line");
        let limited = Gate { limited: Some(NOW + Duration::from_millis(200)), ..closed };
        assert_eq!(
            said(State::Leased, NOW, &limited),
            "rate limit or bulkhead is full, next attempt in under 1 s"
        );
        let asked = Gate { throttled: Some(after(400)), ..limited };
        assert_eq!(said(State::Queued, NOW, &asked), "the service asked for a pause, next attempt in 7 min");
    }

    /// UI-2: a service says what the next of its deliveries waits for.
    #[test]
    fn ui_2_a_service_waits_for_what_its_next_delivery_waits_for() {
        let closed = Gate::default();
        assert_eq!(closed.of_service(3, None, false, NOW), Wait::Turn);
        assert_eq!(closed.of_service(0, Some(after(9)), false, NOW), Wait::Time { at: after(9) });
        assert_eq!(closed.of_service(0, None, true, NOW), Wait::Rule);
        assert_eq!(closed.of_service(0, None, false, NOW), Wait::Order);
        let forced = Gate { circuit: Some((CircuitState::ForcedOpen, None)), ..closed };
        let wait = forced.of_service(0, Some(after(9)), true, NOW);
        assert_eq!(wait.explain(NOW), "circuit forced open, until somebody resets it");
        assert_eq!(Gate { paused: true, ..forced }.of_service(3, None, false, NOW), Wait::Service);
        assert_eq!((Wait::Service.until(), Wait::Service.needs_person()), (None, true));
        assert!(Wait::WORDS.contains(&wait.word()));
    }
}
