//! Tests against a real RabbitMQ.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod connection;
mod consume;
mod crash;
mod letters;
#[cfg(feature = "metrics")]
mod numbers;
mod outage;
mod publish;
mod support;
mod topology;
