//! The hub to the outside: its API, how deliveries reach their peers, and how it is put together.

pub mod backup;
pub mod client;
mod credentials;
mod dashboard;
pub mod demo;
mod gateway;
mod history;
pub mod http;
mod hub;
pub mod log;
mod notify;
pub mod numbers;
pub mod pulse;
pub mod responses;
mod rotate;
pub mod seal;
mod serve;
pub mod source;
mod spans;
pub mod transport;

pub use hub::{CannotOpen, Hub, MetricsAccess, Options, WRITE_TIMEOUT_USUAL, is_range};
pub use seawall_hub_core::domain::retention;
pub use seawall_hub_core::service::log_panics;
pub use serve::serve;
