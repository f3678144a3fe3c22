//! What the hub does: one file for each verb.

mod accept;
mod deliver;
mod lane;
mod rulebook;

pub use accept::{Accept, Accepted, Incoming, NotAccepted};
pub use deliver::Deliver;
pub use lane::{IN_HAND_MAX, InHand};
pub use rulebook::{BadRule, Matched, Rulebook, Tally, compile};
