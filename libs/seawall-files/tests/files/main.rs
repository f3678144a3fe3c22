//! Tests of files against real servers.

mod azure;
mod bodies;
mod common;
mod disk;
mod failover;
mod outage;
mod rules;
mod s3;
mod spool;
