//! What the hub needs from outside.

mod desk;
pub mod store;
pub mod transport;
mod unit;
mod work;
