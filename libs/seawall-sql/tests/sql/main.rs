//! Tests against real databases.

mod commit;
mod dead_letter;
mod failover;
mod fault;
mod hooks;
mod idempotency;
mod job;
#[cfg(feature = "tracing")]
mod lines;
mod lock;
mod outbox;
mod saga;
mod schema;
