//! Coordination on Redis, through the crate `redis`.
//!
//! The logic is in `seawall-dist`; this crate has the stores, and two caches.
//!
//! | you need | take | on |
//! |---|---|---|
//! | one process at a time does something | [`lock`] | one Redis, or several with Redlock |
//! | a request that comes twice has one effect | [`idempotency`] | one Redis with its data on disk |
//! | a rate limit that processes share | [`limit`] | one Redis |
//! | values that are expensive to load | [`cache::RedisRemoteCache`] with [`seawall::task::Cache`] | one Redis, without persistence |
//! | values that only a cache has, such as sessions | [`cache::RedisCache`] | one Redis |
//! | a guard around your own code with the crate `redis` | [`RedisErrors`] | |
//!
//! # One Redis, or several
//! One Redis is a single point of failure, and a replica that takes over may lack the last writes: Redis acknowledges a write
//! before replicas have it. For caches and limits that does not matter. A lock on one Redis may be held twice after such a
//! failover, and Redlock on five independent servers may be too when clocks or pauses go wrong. Neither is a reason to trust a
//! lock alone: give the fencing token to whatever the lock protects, and let it refuse an older one.
//!
//! # What a restart loses
//! | setting of Redis | what a crash loses | what comes back | good for |
//! |---|---|---|---|
//! | no persistence: `save ""`, `appendonly no` | everything | nothing | caches, limits |
//! | `appendonly yes`, `appendfsync everysec` (usual) | up to the last two seconds | entries whose deletion was lost | sessions |
//! | `appendonly yes`, `appendfsync always` | nothing that was acknowledged | everything | locks, idempotency keys |
//! | snapshots: `save 3600 1 …` | everything since the last one | old entries, old locks | none of these |
//!
//! When Redis comes back empty:
//! - **Caches** are cold: each process loads each value once, behind its singleflight. Leases from before are worth nothing, and
//!   copies in memory are cleared when the subscription stands again.
//! - **Locks** are free although holders may still work. Fencing tokens must not begin anew; the page of [`lock`] says how.
//! - **Idempotency keys** are forgotten: a request that is repeated then has its effect again.
//! - **Limits** begin with a full allowance.
//!
//! Memory that is full is the other way to lose data. Use `maxmemory-policy allkeys-lru` for a Redis that is only a cache, and
//! `noeviction` for locks and idempotency keys, because an evicted lock is a lock that two hold. So they belong on two servers.
//!
//! # Failures
//! Every store's error is a [`StoreError`](seawall_dist::StoreError) that says whether the command took effect. The section below
//! has the table.
#![doc = ""]
#![doc = include_str!("../docs/faults.md")]
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
