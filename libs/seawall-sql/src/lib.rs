//! Coordination on PostgreSQL and SQLite, through `sqlx`.
//!
//! The logic is in `seawall-dist`; this crate has the stores, the schemas, and what only a database can do: work and its
//! record in one transaction.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod fault;
mod migration;

pub use fault::{SqlxErrors, fault_of};
pub use migration::{Migration, POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS};

#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
