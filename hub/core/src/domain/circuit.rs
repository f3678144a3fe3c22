//! A circuit as it is kept, so that a restart does not forget an outage.

use super::slug::Slug;
use super::time::Millis;

/// The stored state of a circuit breaker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circuit {
    pub service: Slug,
    pub state: CircuitState,
    /// Until when an open circuit stays open.
    pub until: Option<Millis>,
    /// The number of times that it opened without much health in between.
    pub trips: u32,
    /// The reason for the state: what a person wrote who changed it, or the failure that it opened for.
    pub reason: Option<String>,
    /// Since when it is in this state. An open circuit whose probes fail counts from its first opening.
    pub changed: Millis,
}

crate::words! {
    /// The state of a circuit breaker.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum CircuitState {
        /// All requests pass.
        Closed = "closed",
        /// No request passes.
        Open = "open",
        /// Some requests pass as probes.
        HalfOpen = "halfOpen",
        /// An operator has opened it.
        ForcedOpen = "forcedOpen",
        /// An operator has closed it.
        ForcedClosed = "forcedClosed",
    }
}
