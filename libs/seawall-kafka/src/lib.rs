//! Kafka with an idempotent producer, retry topics, a dead letter topic and offsets committed after the work.
#![doc = ""]
#![doc = include_str!("../docs/kafka.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod client;
mod cluster;
pub mod consumer;
mod fault;
#[cfg(feature = "metrics")]
pub mod metrics;
mod producer;
mod publisher;
mod publisher_config;
mod record;
mod telemetry;
mod topics;

pub use cluster::{
    CONNECT_TIMEOUT, KafkaCluster, KafkaClusterBuilder, RECONNECT_PAUSE, RECONNECT_PAUSE_MAX, REQUEST_TIMEOUT,
};
pub use consumer::{
    KafkaConsumer, KafkaConsumerBuilder, KafkaConsumerError, KafkaDeadLetterConsumer,
    KafkaDeadLetterConsumerBuilder,
};
pub use fault::{KafkaErrors, fault_of};
pub use publisher::KafkaPublisher;
pub use publisher_config::KafkaPublisherBuilder;
pub use topics::{EVIDENCE_BYTES_MAX, MESSAGE_BYTES_MAX, TopicFamily};

/// The defaults of a publisher.
pub mod publish {
    pub use crate::publisher_config::{
        ATTEMPTS, BACKOFF_BASE, BREAKER_COOLDOWN, BREAKER_FAILURE_RATE, BREAKER_MINIMUM_CALLS,
        BREAKER_PROBES, BREAKER_WINDOW, CALL_WAIT, CALLS_MAX, GUARD_NAME, TIME_LIMIT, default_guard,
    };
}
