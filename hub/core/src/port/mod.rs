//! What the hub needs from outside.

mod alerts;
mod crash;
mod dead_letters;
mod error;
mod events;
pub mod notify;
mod operations;
mod registry;
mod retention;
pub mod store;
pub mod transport;
mod unit;
mod unit_store;
