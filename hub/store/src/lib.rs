//! Where the hub keeps everything: the port [`Store`](seawall_hub_core::port::store::Store) on SQLite.

pub mod sqlite;

pub use sqlite::backup::{self, Copied};
pub use sqlite::{OpenError, Sqlite};
