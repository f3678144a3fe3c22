//! Tests of files against real servers.

mod azure;
mod bodies;
mod common;
mod disk;
mod rules;
mod s3;
