//! The tables, and bringing a database to them.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::fault;
use super::locks::{NAMESPACE, STARTING};
use super::session::Session;
use super::writer::{begin, commit, roll_back};
use crate::OpenError;

/// The migrations from an empty database to the current schema, one for each version. Those that were released are never changed.
const STEPS: [&str; 1] = [include_str!("../step_1.sql")];

/// The version of the schema that this program knows.
const KNOWN: i32 = STEPS.len() as i32;

/// The versions that a database has been brought to.
const VERSIONS: &str = "CREATE TABLE seawall_schema (
    version integer     PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT clock_timestamp()
)";

/// How often another start is looked at that holds the lock, and how often at most.
const POLL: Duration = Duration::from_millis(100);
const POLLS_MAX: u32 = 300;

/// Brings the database to the current schema. Several may do so at once: one does it, and the others wait for that one.
pub(in crate::postgres) async fn migrate(session: &Session) -> Result<(), OpenError> {
    let failed = |error: Error| unprepared(&error);
    lock_start(session).await?;
    let done = apply_steps(session).await;
    match done {
        Ok(()) => commit(session).await.map_err(failed),
        Err(error) => {
            roll_back(session).await.map_err(failed)?;
            Err(error)
        }
    }
}

/// Begins a transaction that no other start has at the same time.
///
/// # Why is the lock tried again and again?
/// A session that waits for a lock holds a snapshot, which other sessions may have to wait for: two starts would then wait for
/// each other.
pub(in crate::postgres) async fn lock_start(session: &Session) -> Result<(), OpenError> {
    let failed = |error: Error| unprepared(&error);
    for _ in 0..POLLS_MAX {
        begin(session).await.map_err(failed)?;
        let locked = session.find("SELECT pg_try_advisory_xact_lock($1, $2)", &[&NAMESPACE, &STARTING]).await;
        if locked.map_err(failed)?.is_some_and(|row| row.get(0)) {
            return Ok(());
        }
        roll_back(session).await.map_err(failed)?;
        sleep(POLL).await;
    }
    Err(OpenError("another hub has been preparing the database for 30 s; wait for it, or stop it".into()))
}

pub(in crate::postgres) async fn apply_steps(session: &Session) -> Result<(), OpenError> {
    let version = version(session).await.map_err(|error| unprepared(&error))?;
    if version > 0 {
        check_program(session).await?;
    }
    for (step, sql) in (1_i32..).zip(STEPS).skip(usize::try_from(version).unwrap_or(0)) {
        apply_step(session, step, sql).await.map_err(|error| unprepared(&error))?;
    }
    Ok(())
}

async fn apply_step(session: &Session, step: i32, sql: &str) -> Result<(), Error> {
    if step == 1 {
        session.run_text(VERSIONS).await?;
    }
    session.run_text(sql).await?;
    session.run("INSERT INTO seawall_schema (version) VALUES ($1)", &[&step]).await.map(drop)
}

/// Says why the tables could not be made, and what to do.
fn unprepared(error: &Error) -> OpenError {
    let text = fault::text(error);
    match error.code() {
        Some(code) if *code == SqlState::DUPLICATE_TABLE => OpenError(format!(
            "the database has tables of another program ({text}); use one of its own for the hub"
        )),
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => OpenError(format!(
            "the hub may not create its tables ({text}); make its role the owner of the database"
        )),
        _ => OpenError(format!("can't prepare the database: {text}")),
    }
}

/// Returns the version of the database; 0 if it is empty.
async fn version(session: &Session) -> Result<i32, Error> {
    let there = session.find("SELECT to_regclass('seawall_schema') IS NOT NULL", &[]).await?;
    if !there.is_some_and(|row| row.get(0)) {
        return Ok(0);
    }
    let version = session.find("SELECT coalesce(max(version), 0) FROM seawall_schema", &[]).await?;
    Ok(version.map_or(0, |row| row.get(0)))
}

/// Checks that the data is still here, and that this program may use what a newer one has made of the database.
async fn check_program(session: &Session) -> Result<(), OpenError> {
    let row = session.find("SELECT oldest_program, moved FROM meta", &[]).await;
    let row =
        row.map_err(|error| OpenError(format!("can't prepare the database: {}", fault::text(&error))))?;
    let (oldest, moved): (i32, Option<String>) = row.map_or((KNOWN, None), |row| (row.get(0), row.get(1)));
    if let Some(folder) = moved {
        return Err(OpenError(format!(
            "the data of this database was moved to the folder `{folder}`: start the hub there, without `--database`. If the move \
             was interrupted, run `seawall migrate` once more"
        )));
    }
    if oldest <= KNOWN {
        return Ok(());
    }
    Err(OpenError(format!(
        "the database was written by a newer Seawall (it needs version {oldest}, this one knows {KNOWN}); start that one, \
         or restore a backup from before"
    )))
}
