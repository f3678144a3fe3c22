//! Coordination across processes and time: what has to hold although the one who began may be gone.
//!
//! Logic and plain types, without a store: stores on SQLite, Postgres and Redis are crates of their own, and the hub has its
//! own. What two of them need is written once, here.
//!
//! - [`lock`]: work under a lock runs in one process at a time, and a fencing token refuses what comes too late.
//! - [`idempotency`]: work under a key happens once, and a caller that repeats it gets the stored result.
//! - [`outbox`]: a message is stored with the data that it tells of, and published later, at least once.
//! - [`saga`]: steps in several places that end all done or all undone.
//! - [`schedule`]: a job runs once across all processes.
//! - [`limit`]: a rate limit that several processes share.
//! - [`messaging`]: what every consumer of a broker does with a message.
//! - [`deadletter`]: what was given up, in one form, wherever it came from.

mod bounded;
pub mod deadletter;
pub mod idempotency;
mod lease;
pub mod limit;
pub mod lock;
mod message;
pub mod messaging;
pub mod outbox;
mod random;
pub mod saga;
pub mod schedule;
mod store;
#[cfg(feature = "metrics")]
pub mod telemetry;
mod time;
mod work;

pub use message::{Message, PublishError, PublishFuture, Publisher};
pub use store::{StoreError, StoreFuture};
pub use time::Millis;
