//! Tests against a real Redis.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod cache;
mod connection;
mod fault;
mod idempotency;
mod job;
mod limit;
mod lock;
