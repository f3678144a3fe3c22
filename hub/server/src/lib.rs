//! The hub to the outside: its API, how deliveries reach their peers, and how it is put together.

#![allow(
    missing_docs,
    reason = "nobody depends on this crate from outside: where a name says it all, there is no comment"
)]

pub mod backup;
mod credentials;
mod dashboard;
mod database;
pub mod demo;
mod gateway;
mod history;
pub mod http;
mod hub;
pub mod liveness;
pub mod log;
pub mod metric_store;
pub mod migrate;
mod notify;
pub mod responses;
mod rotate;
pub mod seal;
mod serve;
pub mod source;
mod spans;
mod start;
pub mod transport;
mod unfold;

pub use database::DatabaseUrl;
pub use hub::Server;
pub use seawall_hub_core::domain::retention;
pub use seawall_hub_core::service::log_panics;
pub use serve::serve;
pub use start::{MetricsAccess, StartError, StartOptions, WRITE_TIMEOUT_USUAL, is_range};
