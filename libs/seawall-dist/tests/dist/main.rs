//! Tests of the logic on stores in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod dead_letter;
mod faults;
mod idempotency;
mod job;
mod limit;
mod lock;
mod messaging;
#[cfg(feature = "metrics")]
mod metrics;
mod observe;
mod outbox;
mod saga;
mod threads;
