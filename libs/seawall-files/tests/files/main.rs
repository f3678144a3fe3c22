//! Tests of files against real servers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod azure;
mod bodies;
mod common;
mod disk;
mod drops;
mod failover;
mod kills;
mod memory;
mod outage;
mod rules;
mod s3;
mod spool;
mod telemetry;
mod tls;
