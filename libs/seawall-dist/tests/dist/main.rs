//! Tests of the logic on stores in memory.

mod idempotency;
mod job;
mod limit;
mod lock;
mod outbox;
mod saga;
