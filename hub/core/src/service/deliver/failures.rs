//! What the peer of a lane did last that its circuit opens for.

use std::sync::PoisonError;

use seawall::{Error, Fault, Kind};

use super::lane::Lane;
use super::seen;
use crate::domain::circuit::CircuitState;
use crate::port::transport::NoAnswer;

impl Lane {
    /// The peer did something that a circuit opens for.
    pub(super) fn note_failure(&self, what: Option<&str>) {
        let Some(what) = what else { return };
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.to_owned());
    }

    /// The same of a call that somebody waited for.
    pub(super) fn note_call<A>(
        &self,
        called: &Result<A, Error<NoAnswer>>,
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

    /// What the peer did last that a circuit opens for, if that was since the circuit last closed.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the circuit stands, in one word.
    pub(super) fn state_word(&self) -> &'static str {
        self.guard.breaker().map_or("none", |breaker| seen::state_of(breaker).word())
    }

    /// Why the circuit stands where it does: what a person said, or what the peer did.
    pub(super) fn why(&self) -> Option<String> {
        let breaker = self.guard.breaker()?;
        match seen::state_of(breaker) {
            CircuitState::ForcedOpen | CircuitState::ForcedClosed => {
                breaker.reason().map(|reason| reason.to_string())
            }
            CircuitState::Open | CircuitState::HalfOpen => self.last_failure(),
            CircuitState::Closed => None,
        }
    }
}
