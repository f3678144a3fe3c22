//! Consumes queues: messages of an application, and dead letters.

mod config;
mod consumer;
mod dead_letters;
mod forward;
mod log;
mod subscription;
mod suspects;

pub use config::{AmqpConsumerBuilder, CONCURRENCY, HOLD_MAX, PREFETCH, STOP_TIMEOUT};
pub use consumer::AmqpConsumer;
pub use dead_letters::{AmqpDeadLetterReader, INTAKE_WAIT, INTAKE_WAIT_MAX};
