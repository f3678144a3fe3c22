//! Sagas on PostgreSQL: the store, and marks that steps write beside their effects.

mod mark;
mod write;

pub use mark::{clean_up_marks, mark_compensation, mark_step};

use sqlx::postgres::{PgPool, PgRow};

saga_store! {
    /// A store of sagas on PostgreSQL. Apply [the schema](crate::postgres::migrate) first. Times come from the database's clock.
    store PostgresSagaStore on PgPool, PgRow;
    sql postgres_sql;
}
