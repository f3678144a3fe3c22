//! Dead letters on PostgreSQL.

use sqlx::postgres::{PgConnection, PgPool};

dead_letter_store! {
    /// Keeps dead letters in PostgreSQL, in the table `seawall_dead_letters`.
    store PostgresDeadLetters on Postgres, PgPool, PgConnection, sqlx::postgres::PgRow;
    begin crate::postgres::begin;
    now "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    for_update " FOR UPDATE";
    position "strpos";
}
