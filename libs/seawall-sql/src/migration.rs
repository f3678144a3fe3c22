//! The schema of the stores, as files that any migration tool can apply.

/// A part of the schema: one store needs no tables but those of its part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Part {
    /// Locks and their fencing tokens.
    Locks,
    /// Idempotency keys and processed events.
    Idempotency,
    /// The outbox.
    Outbox,
    /// Sagas, their journals, and the marks of their steps.
    Sagas,
    /// Scheduled jobs and their history.
    Jobs,
    /// Dead letters.
    DeadLetters,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 6] =
        [Part::Locks, Part::Idempotency, Part::Outbox, Part::Sagas, Part::Jobs, Part::DeadLetters];
}

/// One step of the schema. Apply those of the parts that you need in order; or let the `migrate` of the database's module do it.
/// A step that was applied before changes nothing, so that both ways can follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Migration {
    /// The name of the file without `.sql`: `0001_locks`.
    pub name: &'static str,
    /// The part that it belongs to.
    pub part: Part,
    /// The statements.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($database:literal: $($part:ident $name:literal)*) => {
        &[$(Migration {
            name: $name,
            part: Part::$part,
            sql: include_str!(concat!("../migrations/", $database, "/", $name, ".sql")),
        }),*]
    };
}

/// The schema on PostgreSQL.
pub const POSTGRES_MIGRATIONS: &[Migration] = migrations!("postgres":
    Locks "0001_locks"
    Idempotency "0002_idempotency"
    Outbox "0003_outbox"
    Sagas "0004_sagas"
    Jobs "0005_jobs"
    DeadLetters "0006_dead_letters"
);

/// The schema on SQLite.
pub const SQLITE_MIGRATIONS: &[Migration] = migrations!("sqlite":
    Locks "0001_locks"
    Idempotency "0002_idempotency"
    Outbox "0003_outbox"
    Sagas "0004_sagas"
    Jobs "0005_jobs"
    DeadLetters "0006_dead_letters"
);
