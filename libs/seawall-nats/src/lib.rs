#![doc = include_str!("../docs/nats.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
pub mod consumer;
pub mod deadletter;
mod error;
mod fault;
mod format;
mod log;
mod names;
mod position;
pub mod publisher;
mod pull;
mod settle;

pub use connection::{
    CONNECT_TIMEOUT, NatsConnection, NatsConnectionBuilder, PING_INTERVAL, RECONNECT_PAUSES, REQUEST_TIMEOUT,
};
pub use consumer::NatsConsumer;
pub use deadletter::{NatsAdvisoryCollector, NatsDeadLetterReader};
pub use error::NatsError;
pub use fault::{NatsErrors, fault_of};
pub use publisher::NatsPublisher;
