//! Sagas on SQLite: the store, and marks that steps write beside their effects.

mod mark;
mod write;

pub use mark::{clean_up_marks, mark_compensation, mark_step};

use sqlx::sqlite::{SqlitePool, SqliteRow};

saga_store! {
    /// A store of sagas on SQLite. Apply [the schema](crate::sqlite::migrate) first. Times come from SQLite, which is the clock of
    /// the machine: all processes that share the file share it.
    store SqliteSagaStore on SqlitePool, SqliteRow;
    sql sqlite_sql;
}
