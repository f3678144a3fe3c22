//! RabbitMQ with confirmed publishing, quorum queues, delayed retries and a dead letter queue, through the crate `lapin`.
//!
//! | you need | take |
//! |---|---|
//! | the queues of a consumer, declared as they should be | [`topology::QueueTopology`] |
//! | to publish | [`publish::AmqpPublisher`] |
//! | to consume | [`consume::AmqpConsumer`] |
//! | dead letters in a store | [`consume::AmqpDeadLetterReader`] |
//! | a guard around your own code with the crate `lapin` | [`AmqpErrors`] |
#![doc = ""]
#![doc = include_str!("../docs/rabbitmq.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
pub mod consume;
mod error;
mod fault;
mod message;
pub mod publish;
mod socket;
pub mod topology;

pub use connection::{
    AmqpConnection, AmqpConnectionBuilder, CONNECT_TIMEOUT, HEARTBEAT, RECONNECT_WAIT, RECONNECT_WAIT_MAX,
    RESPONSE_TIMEOUT, TIMEOUTS_BEFORE_RECONNECT,
};
pub use error::AmqpError;
pub use fault::{AmqpErrors, fault_of};

/// The messaging system, in the metrics of publishers and consumers.
pub const SYSTEM: &str = "rabbitmq";
