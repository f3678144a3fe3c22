//! What the hub does: one file for each verb.

mod accept;
mod deliver;
mod lane;
mod rulebook;

pub use accept::{Accept, Accepted, Incoming, NotAccepted};
pub use deliver::Deliver;
pub use lane::{IN_HAND_MAX, InHand};
pub use rulebook::{BadRule, Matched, Rulebook, Tally, compile};

/// The wall time now.
#[must_use]
pub fn wall_time(clock: &seawall::Clock) -> crate::domain::time::Millis {
    let since = clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crate::domain::time::Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
