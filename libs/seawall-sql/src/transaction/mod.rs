//! Work in a transaction, and hooks that run when it is committed.
#![doc = ""]
#![doc = include_str!("../../docs/transaction.md")]

mod active;
mod begin;
mod database;
mod error;
mod hook;
mod policy;

pub use active::{ActiveTransaction, TransactionFuture, scoped};
pub use begin::begin;
pub(crate) use begin::begin_with;
pub use database::TransactionalDatabase;
pub use error::TransactionError;
pub use hook::{HookError, HookResult};
#[cfg(feature = "postgres")]
pub use policy::Isolation;
pub use policy::{ATTEMPTS, BACKOFF, Transactions, in_transaction};
