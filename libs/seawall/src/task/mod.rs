//! Concurrency inside one process: work that callers share, pools of workers, groups of tasks, an orderly end.
//!
//! | you have | you want | take |
//! |---|---|---|
//! | many callers that ask the same at the same time | to do it once | [`Singleflight`](flight::Singleflight) |
//! | callers that ask for sets of ids | to ask once for each set | [`BatchClient`](batch::BatchClient) |
//! | answers that many ask for again and again | to keep them for a while | [`Cache`](cache::Cache) |
//! | many items, one handler | so many at once, a result for each | [`Dispatcher`] |
//! | a few different things | all of them at once, and the first error | [`Group`] |
//! | a process that is told to end | an end in order, and in time | [`Shutdown`] |

#![cfg_attr(seawall_loom, allow(dead_code, reason = "the models need the rules, not what waits for them"))]

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
pub mod flight;
#[cfg(feature = "task")]
pub mod group;
#[cfg(all(test, seawall_loom))]
mod models;
#[cfg(feature = "task")]
mod panic;
#[cfg(feature = "task")]
pub mod shutdown;

#[cfg(feature = "task")]
pub use dispatch::Dispatcher;
#[cfg(feature = "task")]
pub use error::TaskError;
pub use failure::Failure;
#[cfg(feature = "task")]
pub use group::{Group, GroupError};
#[cfg(feature = "task")]
pub use panic::{Panic, keep_backtraces};
#[cfg(feature = "task")]
pub use shutdown::Shutdown;

/// Starts work that belongs to no caller. Whoever starts it leaves it to the work itself to end: within its time, with its
/// panics caught, and with somebody told.
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
