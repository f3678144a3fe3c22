//! The whole guard, seen by its users: one test binary, one file for each concern.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod abandonment;
mod allocations;
mod amplification;
mod blocking;
mod breaker;
#[cfg(feature = "task")]
mod cache;
mod chaos;
#[cfg(feature = "reqwest")]
mod clients;
#[cfg(feature = "config")]
mod config;
mod deadlines;
#[cfg(feature = "task")]
mod dispatcher;
mod drops;
mod edge;
mod ends;
mod events;
mod explain;
mod failover;
mod fallback;
#[cfg(feature = "task")]
mod group;
mod hedge;
mod hooks;
mod impossible;
mod limits;
mod million;
mod model;
mod names;
#[cfg(feature = "tracing")]
mod paper;
mod pause;
mod permits;
mod random;
mod registry;
mod retry;
#[cfg(all(feature = "task", feature = "test-util"))]
mod serial;
mod shares;
mod shutdown;
#[cfg(feature = "task")]
mod singleflight;
#[cfg(all(feature = "tracing-subscriber", feature = "test-util"))]
mod spans;
#[cfg(all(feature = "tracing", feature = "metrics"))]
mod telemetry;
mod threads;
#[cfg(feature = "tower")]
mod tower;
#[cfg(all(feature = "http", feature = "tower"))]
mod tower_http;
#[cfg(all(feature = "tracing-subscriber", feature = "task", feature = "test-util"))]
mod traces;
#[cfg(feature = "tracing")]
mod writer;
