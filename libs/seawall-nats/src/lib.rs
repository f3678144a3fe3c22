//! NATS JetStream with acknowledged publishing, durable consumers, delayed redelivery and dead letters.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod error;
mod fault;
mod format;
mod names;
pub mod publisher;

pub use connection::{
    CONNECT_TIMEOUT, NatsConnection, NatsConnectionBuilder, PING_INTERVAL, RECONNECT_PAUSES, REQUEST_TIMEOUT,
};
pub use error::NatsError;
pub use fault::{NatsErrors, fault_of};
pub use publisher::NatsPublisher;
