//! Where the hub keeps everything: the port [`Store`](seawall_hub_core::port::store::Store) on SQLite, and in
//! memory for tests.

#![allow(
    missing_docs,
    reason = "nobody depends on this crate from outside: where a name says it all, there is no comment"
)]

mod any;
#[cfg(feature = "memory")]
pub mod memory;
pub mod migrate;
pub mod postgres;
mod queue;
mod record;
mod search_text;
mod sql;
pub mod sqlite;
mod steps;
mod telemetry;
#[cfg(test)]
mod tests;

pub use any::{AnyStore, lock_folder};
pub use migrate::{MigrationProgress, MigrationReport};
pub use postgres::{Postgres, PostgresOptions};
pub use sqlite::backup::{self, CopyReport};
pub use sqlite::{OpenError, Sqlite};
