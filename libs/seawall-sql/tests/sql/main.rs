//! Tests against real databases.

mod dead_letter;
mod failover;
mod fault;
mod hooks;
mod idempotency;
mod job;
mod lock;
mod outbox;
mod saga;
mod schema;
