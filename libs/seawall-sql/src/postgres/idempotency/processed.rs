//! The table `processed_events` on PostgreSQL.

use sqlx::postgres::{PgConnection, PgPool};

processed_events! {
    /// While another transaction processes the same event, this one waits for its end.
    events on PgPool, PgConnection;
    sql postgres_sql;
}
