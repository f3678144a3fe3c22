//! The hub to the outside: its API, how deliveries reach their peers, and how it is put together.

pub mod backup;
pub mod client;
mod credentials;
mod dashboard;
pub mod demo;
mod gateway;
pub mod http;
mod hub;
pub mod log;
pub mod numbers;
mod rotate;
pub mod seal;
mod serve;
pub mod source;
mod spans;
pub mod transport;

pub use hub::{CannotOpen, Hub, Options, is_range};
pub use seawall_hub_core::domain::retention;
pub use serve::serve;
