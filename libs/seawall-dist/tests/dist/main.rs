//! Tests of the logic on stores in memory.

mod dead_letter;
mod idempotency;
mod job;
mod limit;
mod lock;
mod outbox;
mod saga;
