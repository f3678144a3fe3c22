//! Scheduled jobs on PostgreSQL.

use sqlx::postgres::{PgConnection, PgPool, PgRow};

job_store! {
    /// A store of jobs on PostgreSQL. Apply [the schema](crate::postgres::migrate) first. Times come from the database's clock.
    store PostgresJobStore on PgPool, PgConnection, PgRow;
    begin crate::postgres::begin;
    sql postgres_sql;
}
