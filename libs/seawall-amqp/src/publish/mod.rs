//! Publishes messages, each confirmed by the server.

mod channels;
mod config;
mod publisher;
mod wire;

pub(crate) use channels::Channels;
pub use config::{
    AmqpPublisherBuilder, BREAKER_COOLDOWN, BREAKER_FAILURE_RATE, BREAKER_MINIMUM_CALLS, BREAKER_PROBES,
    BREAKER_WINDOW, BULKHEAD_CALLS, CHANNELS_MAX, GUARD_NAME, HEADER_BYTES_MAX, IN_FLIGHT_BYTES_MAX,
    IN_FLIGHT_MAX, MESSAGE_BYTES_MAX, PUBLISH_ATTEMPTS, PUBLISH_RETRY_WAIT, TIME_LIMIT, default_guard,
};
pub use publisher::AmqpPublisher;
pub(crate) use wire::{OutgoingMessage, SendOutcome, send};
