//! Coordination on PostgreSQL and SQLite, through `sqlx`.
//!
//! The logic is in `seawall-dist`; this crate has the stores, the schemas, and what only a database can do: work and its
//! record in one transaction.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[macro_use]
mod dead_letter;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[macro_use]
mod dialect;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod duration;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod failover;
pub mod fault;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[macro_use]
mod idempotency;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[macro_use]
mod job;
mod migration;
mod outbox_row;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[macro_use]
mod saga;
mod step;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod text;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod transaction;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod unreadable;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use failover::SqlFailover;
pub use fault::{SqlxErrors, fault_of};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use idempotency::TransactionWork;
pub use migration::{Migration, POSTGRES_MIGRATIONS, Part, SQLITE_MIGRATIONS};
pub use step::step_error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use transaction::{Transactions, in_transaction};

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "metrics")]
pub mod telemetry;
