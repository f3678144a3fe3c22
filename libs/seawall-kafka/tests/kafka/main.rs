//! Tests against a real Kafka.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod fault;
mod publisher;
mod support;
