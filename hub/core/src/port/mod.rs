//! What the hub needs from outside.

mod alerts;
mod crash;
mod desk;
pub mod notify;
pub mod store;
pub mod transport;
mod unit;
mod work;
