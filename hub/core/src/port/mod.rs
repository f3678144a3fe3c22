//! What the hub needs from outside.

pub mod store;
pub mod transport;
mod unit;
