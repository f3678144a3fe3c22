//! Locks that several processes share, with fencing tokens.
#![doc = ""]
#![doc = include_str!("../../docs/lock.md")]

mod acquire;
mod clock;
mod config;
mod error;
mod fence;
mod hold;
mod key;
mod lease;
mod locks;
mod machine;
mod memory;
mod redlock;
mod release;
mod scope;
mod store;
mod telemetry;

pub use clock::BootClock;
use config::LockOptions;
pub use config::{
    ATTEMPT_LIMIT, ATTEMPTS, LEASE, LEASE_MAX, LEASE_MIN, MAX_HOLD, RELEASE_LIMIT, RETRY_DELAY,
    UNTIL_LOCKED_DELAY, Wait,
};
pub use error::{LockError, LossReason};
pub use fence::{FencingSource, FencingToken};
pub use key::{KEY_LENGTH_MAX, LockKey, LockKeyError, USER_TRANSACTION};
pub use lease::Lease;
pub use locks::{LockCall, Locks, LocksBuilder};
pub use memory::MemoryLocks;
pub use redlock::{LockNode, MemoryNode, NODE_TIMEOUT_MAX, NODE_TIMEOUT_SHARE, NodeAnswer, Redlock};
pub use store::{Acquisition, LockStore, OwnerId};
#[cfg(feature = "metrics")]
pub(crate) use telemetry::METRICS;

#[cfg(test)]
mod tests;
