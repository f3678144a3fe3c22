//! One suite per trait of `seawall-dist`: what every store has to hold, whatever it is made of.
//!
//! A suite takes a store that nobody else uses and panics with a sentence when the store breaks its contract. Run it against
//! a store of your own:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use std::sync::Arc;
//! use seawall_dist::lock::MemoryLocks; // Yours in its place.
//! seawall_testkit::conformance::lock(Arc::new(MemoryLocks::new())).await;
//! # }
//! ```

mod dead_letter;
#[cfg(all(unix, feature = "servers"))]
pub mod duplicates;
mod idempotency;
mod job;
#[cfg(all(unix, feature = "servers"))]
pub mod job_processes;
mod limit;
mod lock;
mod outbox;
mod remote_cache;
mod saga;

pub use dead_letter::dead_letter;
pub use idempotency::idempotency;
pub use job::job;
pub use limit::limit;
pub use lock::{lock, lock_tokens};
pub use outbox::{OutboxUnderTest, TestFuture, TestTransaction, outbox};
pub use remote_cache::{remote_cache, remote_cache_versions};
pub use saga::saga;
