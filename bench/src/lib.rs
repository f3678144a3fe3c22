//! Benchmarks of the engine, the HTTP client and the hub, beside their peers and beside the limits of the machine. README.md
//! says how to run them and how to read them.

pub mod body;
pub mod caches;
pub mod cli;
pub mod coordination;
pub mod engine;
pub mod footprint;
pub mod gateway;
pub mod harness;
pub mod hub;
pub mod json;
pub mod launch;
pub mod limits;
pub mod op;
pub mod ours;
pub mod pair;
pub mod peers;
pub mod postgres;
pub mod ratio;
pub mod row;
pub mod table;
pub mod targets;
pub mod tasks;
pub mod watched;
