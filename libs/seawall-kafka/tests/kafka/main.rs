//! Tests against a real Kafka.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod consumer;
mod crash;
mod fault;
mod inbox;
mod outage;
mod publisher;
mod rebalance;
mod support;
mod workers;
