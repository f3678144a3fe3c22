//! Plain types and rules.

pub mod delivery;
pub mod event_type;
pub mod slug;
pub mod time;
