//! Tests against a real Redis.

mod cache;
mod connection;
mod idempotency;
mod limit;
mod lock;
