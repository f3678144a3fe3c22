//! The answer "not now", and the error of a call without a guard.

use std::fmt;
use std::time::Duration;

use super::snapshot::State;
use super::word::Place;
use crate::clock::{Rounded, Unit, from_units};

/// A call that a circuit did not let through.
///
/// One word, so that a refusal comes back in a register: where the circuit stood (8 bits), units to wait (56 bits).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused(u64);

impl Refused {
    const NOBODY_KNOWS: u64 = (1 << 56) - 1;

    pub(super) fn new(place: Place, wait: Option<Unit>) -> Self {
        let wait = wait.map_or(Self::NOBODY_KNOWS, |wait| wait.min(Self::NOBODY_KNOWS - 1));
        Refused((place as u64) << 56 | wait)
    }

    /// Where the circuit stood.
    #[must_use]
    pub fn state(&self) -> State {
        match self.0 >> 56 {
            place if place == Place::Open as u64 => State::Open,
            place if place == Place::HalfOpen as u64 => State::HalfOpen,
            place if place == Place::Ramping as u64 => State::Ramping,
            _ => State::ForcedOpen,
        }
    }

    /// When to come back; `None` while a person holds it open.
    #[inline]
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = self.0 & Self::NOBODY_KNOWS;
        (wait != Self::NOBODY_KNOWS).then(|| from_units(wait))
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("state", &self.state())
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit is {}", self.state())?;
        match self.retry_after() {
            Some(wait) => write!(f, ", try again in {}", Rounded(wait)),
            None => f.write_str(", until it is reset"),
        }
    }
}

impl std::error::Error for Refused {}

/// Why a call through a circuit without a guard has no value.
///
/// Flat, so that one `?` is enough, and so that it travels in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure<E> {
    /// The circuit did not let it through.
    Refused(Refused),
    /// The operation failed.
    Failed(E),
}

impl<E> From<Refused> for Failure<E> {
    #[inline]
    fn from(refused: Refused) -> Self {
        Failure::Refused(refused)
    }
}

impl<E> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(refused) => refused.fmt(f),
            Failure::Failed(_) => f.write_str("the operation failed"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Failure<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Refused(_) => None,
            Failure::Failed(error) => Some(error),
        }
    }
}
