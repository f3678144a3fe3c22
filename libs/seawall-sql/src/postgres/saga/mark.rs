//! Marks of steps on PostgreSQL.

use sqlx::postgres::{PgConnection, PgPool};

saga_marks! {
    /// A concurrent call under the same key waits until this transaction ends. At the isolation level `READ COMMITTED` the answer
    /// is exact; above it, the transaction may fail with a serialisation error and is attempted again.
    marks on PgPool, PgConnection;
    sql postgres_sql;
}
