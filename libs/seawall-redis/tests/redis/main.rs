//! Tests against a real Redis.

mod cache;
mod connection;
mod fault;
mod idempotency;
mod job;
mod limit;
mod lock;
