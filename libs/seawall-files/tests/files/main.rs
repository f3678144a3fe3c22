//! Tests of files against real servers.

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
