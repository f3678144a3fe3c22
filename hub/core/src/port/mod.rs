//! What the hub needs from outside: traits, and the words in which it speaks to them.

pub mod store;
pub mod transport;
