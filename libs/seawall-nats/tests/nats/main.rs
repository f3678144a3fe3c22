//! Tests against a real NATS server with JetStream.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod connection;
mod consumer;
mod crash;
mod deadletter;
mod observe;
mod outage;
mod publisher;
mod support;
mod workers;
