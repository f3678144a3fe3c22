//! Coordination on Redis, through the crate `redis`.
//!
//! The logic is in `seawall-dist`; this crate has the stores, and a remote cache for `seawall`'s cache.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cache;
mod connection;
mod fault;
pub mod idempotency;
pub mod job;
pub mod limit;
pub mod lock;

pub use connection::{
    ABANDONED_AFTER, CONNECT_TIMEOUT, Connection, ConnectionBuilder, RECONNECT_PAUSES, RESPONSE_TIMEOUT,
    TIMEOUTS_BEFORE_RECONNECT,
};
pub use fault::{RedisErrors, fault_of};
