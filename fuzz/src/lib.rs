//! What must hold for every text that is read as a configuration, and for all bytes that come to the hub from outside.

mod config;
pub mod hub;

pub use config::check;
