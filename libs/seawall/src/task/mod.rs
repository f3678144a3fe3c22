//! Concurrency inside one process: shared work, caches, worker pools, task groups and graceful shutdown.
//!
//! | you have | you want | use |
//! |---|---|---|
//! | many callers that ask the same question at the same time | one execution for all of them | [`Singleflight`] |
//! | callers that ask for sets of ids | one request per set | [`BatchClient`] |
//! | answers that callers ask for again and again | to keep them for a while | [`Cache`] |
//! | many items and one handler | bounded concurrency and a result per item | [`Dispatcher`] |
//! | a few different tasks | all of them at once, and the first error | [`Group`] |
//! | a process that must stop | a stop in order and in time | [`Shutdown`] |
//!
//! This module re-exports every type that a caller names often. The modules below hold the documentation of each tool, its
//! default values and the types that only an extension needs.

#![cfg_attr(
    seawall_loom,
    allow(dead_code, unused_imports, reason = "the models need the rules, not what waits for them")
)]

#[cfg(feature = "task")]
pub mod batch;
#[cfg(feature = "task")]
mod bounded;
pub mod cache;
#[cfg(feature = "task")]
pub mod dispatch;
#[cfg(feature = "task")]
mod error;
mod failure;
#[cfg(feature = "task")]
pub mod group;
#[cfg(all(test, seawall_loom))]
mod models;
#[cfg(feature = "task")]
mod panic;
#[cfg(feature = "task")]
pub mod shutdown;
pub mod singleflight;

#[cfg(feature = "task")]
pub use batch::BatchClient;
pub use cache::CacheStats;
#[cfg(feature = "task")]
pub use cache::{Cache, CacheBuilder, RemoteCache, ScopedCache, VersionedValue};
#[cfg(feature = "task")]
pub use dispatch::{Dispatcher, ItemResult, ResultStream};
#[cfg(feature = "task")]
pub use error::TaskError;
pub use failure::SharedWorkError;
#[cfg(feature = "task")]
pub use group::{Group, GroupError};
#[cfg(feature = "task")]
pub use panic::{Panic, keep_backtraces};
#[cfg(feature = "task")]
pub use shutdown::{Phase, Readiness, Shutdown, ShutdownReport, ShutdownToken, WorkTracker};
#[cfg(feature = "task")]
pub use singleflight::Singleflight;

/// Starts work that belongs to no caller. The work itself must end: within its time limit, with its panics caught, and with a
/// result for everybody who waits.
#[cfg(feature = "task")]
#[expect(clippy::disallowed_methods, reason = "work that callers share must outlive each of them")]
fn start(work: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(work));
}

/// The same work, in the span of whoever starts it: what it logs on a task of its own belongs to that caller's trace.
#[cfg(all(feature = "task", feature = "tracing"))]
fn in_caller_span<F: Future>(work: F) -> impl Future<Output = F::Output> {
    tracing::Instrument::in_current_span(work)
}

#[cfg(all(feature = "task", not(feature = "tracing")))]
fn in_caller_span<F: Future>(work: F) -> F {
    work
}
