//! What the hub does: one file for each verb.

mod accept;
mod rulebook;

pub use accept::{Accept, Accepted, Incoming, NotAccepted};
pub use rulebook::{BadRule, Matched, Rulebook, Tally, compile};
