//! Tests against real databases.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod begin;
mod commit;
mod dead_letter;
mod durations;
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
mod sqlite_commits;
