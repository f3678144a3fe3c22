//! The hub to the outside.

pub mod transport;
