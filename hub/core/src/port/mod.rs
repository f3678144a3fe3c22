//! What the hub needs from outside.

mod alerts;
mod crash;
mod dead_letters;
mod error;
pub mod notify;
mod operations;
pub mod store;
pub mod transport;
mod unit;
