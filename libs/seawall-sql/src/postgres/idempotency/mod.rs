//! Work that happens once, on PostgreSQL.
#![doc = ""]
#![doc = include_str!("../../../docs/idempotency.md")]

mod claim;
mod processed;
mod transaction;

pub use crate::idempotency::{IN_FLIGHT_PAUSE, InvalidEventId};
pub use processed::{record_processed, record_processed_by, remove_processed};
pub use transaction::once_in;

use sqlx::postgres::{PgConnection, PgPool};

idempotency_store! {
    store PostgresIdempotency on PgPool, PgConnection;
    sql postgres_sql;
}
