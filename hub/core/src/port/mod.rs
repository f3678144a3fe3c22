//! What the hub needs from outside.

mod alerts;
pub mod notify;
pub mod store;
pub mod transport;
mod unit;
