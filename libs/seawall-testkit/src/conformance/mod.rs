//! One suite per trait of `seawall-dist`: what every store has to hold, whatever it is made of.
//!
//! A suite takes a store that nobody else uses and panics with a sentence when the store breaks its contract. Run it against
//! a store of your own:
//!
//! ```ignore
//! #[tokio::test]
//! async fn my_store_is_a_lock_store() {
//!     seawall_testkit::conformance::lock(Arc::new(MyStore::new())).await;
//! }
//! ```

mod job;
#[cfg(all(unix, feature = "servers"))]
pub mod job_processes;
mod saga;

pub use job::job;
pub use saga::saga;
mod dead_letter;

pub use dead_letter::dead_letter;
mod remote_cache;

pub use remote_cache::{remote_cache, remote_cache_versions};
mod outbox;

pub use outbox::{OutboxUnderTest, TestFuture, TestTransaction, outbox};
mod lock;

pub use lock::{lock, lock_tokens};
#[cfg(all(unix, feature = "servers"))]
pub mod duplicates;
mod idempotency;
mod limit;

pub use idempotency::idempotency;
pub use limit::limit;
