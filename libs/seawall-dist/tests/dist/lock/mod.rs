//! Locks on stores in memory.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on fails with the reason")]

mod broken;
mod drops;
mod handle;
mod keys;
mod lines;
mod loss;
mod redlock;
mod support;
mod telemetry;
