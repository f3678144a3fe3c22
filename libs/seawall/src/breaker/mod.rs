//! Stop calling what is down, and find out gently when it is back.
#![doc = ""]
#![doc = include_str!("../../docs/breaker.md")]

mod abandonment;
mod config;
mod control;
mod counts;
mod machine;
mod owned;
mod policy;
mod refused;
#[cfg(feature = "serde")]
mod serial;
mod settings;
mod sign;
mod snapshot;
mod ticket;
mod window;
mod word;

pub use config::{
    ABANDONED_AFTER, Breaker, CONSECUTIVE_FAILURES, COOLDOWN, COOLDOWN_MAX, MINIMUM_CALLS, PROBE_TIMEOUT,
    PROBES, SLOW_RATE, SUCCESSES, Scope, Window,
};
pub use counts::Counts;
pub use owned::OwnedTicket;
pub use policy::CircuitBreaker;
pub use refused::{Failure, Refused};
#[cfg(not(seawall_loom))]
pub(crate) use sign::{Move, Sign, Witness};
pub use snapshot::{Snapshot, State};
#[cfg(not(seawall_loom))]
pub(crate) use ticket::{OnPanic, Slot};
pub use ticket::{Outcome, Ticket};

pub use crate::stats::Tally;

#[cfg(all(test, not(seawall_loom)))]
mod tests;
