//! The schema of the stores, as files that any migration tool can apply.

/// One step of the schema. Apply all of them in order, each once; or let the `migrate` of the database's module do it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Migration {
    /// The name of the file without `.sql`: `0001_locks`.
    pub name: &'static str,
    /// The statements.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($database:literal: $($name:literal)*) => {
        &[$(Migration {
            name: $name,
            sql: include_str!(concat!("../migrations/", $database, "/", $name, ".sql")),
        }),*]
    };
}

/// The schema on PostgreSQL.
pub const POSTGRES_MIGRATIONS: &[Migration] = migrations!("postgres":
    "0001_locks"
    "0002_idempotency"
    "0003_outbox"
    "0004_sagas"
    "0005_jobs"
    "0006_dead_letters"
);

/// The schema on SQLite.
pub const SQLITE_MIGRATIONS: &[Migration] = migrations!("sqlite":
    "0001_locks"
    "0002_idempotency"
    "0003_outbox"
    "0004_sagas"
    "0005_jobs"
    "0006_dead_letters"
);
