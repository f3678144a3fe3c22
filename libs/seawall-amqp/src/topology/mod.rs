//! The queues of one consumer: where its messages wait, where they wait for another attempt, and where they end.

mod config;
mod declare;
mod error;

pub use config::{
    DEAD_LETTER_EXCHANGE, MAX_ATTEMPTS, QueueTopology, QueueTopologyBuilder, RETRY_DELAYS,
    UNLIMITED_DELIVERIES,
};
pub use error::TopologyError;
