//! The one thread that writes, and the one place that begins and ends units of work.

use std::sync::Arc;

use rusqlite::{Connection, Error, ErrorCode};
use seawall_hub_core::port::store::{Committed, Kept, StoreError};

use super::changes::Changes;
use super::queue::{Queue, Work};
use super::schema::Start;

pub(super) struct Writer {
    connection: Connection,
    start: Start,
    queue: Arc<Queue>,
}

/// Tells somebody what came of it, when it is on the disk and not before.
type Reply = Box<dyn FnOnce(Result<(), StoreError>)>;

impl Writer {
    pub(super) fn new(connection: Connection, start: Start, queue: Arc<Queue>) -> Self {
        Writer { connection, start, queue }
    }

    pub(super) fn run(self) {
        loop {
            let together = self.queue.take();
            if together.is_empty() {
                return;
            }
            if let Err(reason) = self.commit(together) {
                // Whether the last commit is on the disk is not known. Whoever goes on now may acknowledge what is not
                // there, so nobody does: the next start reads what is.
                self.queue.break_off(&reason);
                return;
            }
        }
    }

    /// Commits everything in hand. An error means that nothing can be trusted any more.
    fn commit(&self, together: Vec<Work>) -> Result<(), String> {
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            let error = translate(&error);
            together.into_iter().for_each(|work| refuse(work, &error));
            return Ok(());
        }
        let replies: Vec<Reply> = together.into_iter().map(|work| self.apply(work)).collect();
        let outcome = match self.connection.execute_batch("COMMIT") {
            Ok(()) => Ok(()),
            Err(error) if is_full(&error) => {
                // Nothing of it was written, and the next one may find room again.
                let _ = self.connection.execute_batch("ROLLBACK");
                Err(StoreError::Full)
            }
            Err(error) => Err(StoreError::Fatal(format!("a commit failed: {error}"))),
        };
        for reply in replies {
            reply(outcome.clone());
        }
        match outcome {
            Err(StoreError::Fatal(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    fn apply(&self, work: Work) -> Reply {
        match work {
            Work::Commit(unit, reply) => {
                let made = self.alone(|changes| changes.unit(&unit));
                Box::new(move |committed| drop(reply.send(committed.and(made))))
            }
            Work::TakeDue(now, room, reply) => {
                let taken = self.alone(|changes| changes.due(now, &room).map_err(|error| translate(&error)));
                Box::new(move |committed| drop(reply.send(committed.and(taken))))
            }
        }
    }

    /// Applies one unit: as a whole, or not at all, whatever becomes of the others beside it.
    fn alone<T>(&self, apply: impl FnOnce(Changes<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let run = |sql| {
            let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
            done.map_err(|error| translate(&error))
        };
        run("SAVEPOINT unit")?;
        let made = apply(Changes::new(&self.connection, self.start));
        if made.is_err() {
            run("ROLLBACK TO unit")?;
        }
        run("RELEASE unit")?;
        made
    }
}

/// The first unit of each start: everything in it, or nothing.
pub(super) fn at_start<T>(
    connection: &mut Connection,
    apply: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let unit = connection.transaction()?;
    let done = apply(&unit)?;
    unit.commit()?;
    Ok(done)
}

fn refuse(work: Work, error: &StoreError) {
    match work {
        Work::Commit(_, reply) => drop(reply.send(Err::<Committed, _>(error.clone()))),
        Work::TakeDue(_, _, reply) => drop(reply.send(Err::<Vec<Kept>, _>(error.clone()))),
    }
}

fn is_full(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

pub(super) fn translate(error: &Error) -> StoreError {
    if is_full(error) { StoreError::Full } else { StoreError::Failed(error.to_string()) }
}
