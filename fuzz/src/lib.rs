//! What must hold for every text that is read as a configuration, and for all bytes that come to the hub from outside.

mod config;
mod count;
pub mod hub;
pub mod rendering;

pub use config::check;
