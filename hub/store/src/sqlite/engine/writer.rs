//! The one thread that writes, and the one place that begins and ends units of work.

use std::sync::Arc;

use rusqlite::{Connection, Error, ffi};
use seawall::Clock;
use seawall_hub_core::port::store::{Change, StoreError};

use crate::queue::{Job, PanicGuard, WriteJob, WriteQueue};
use crate::record::UnreadableRow;
use crate::sqlite::engine::room;
use crate::sqlite::engine::schema::StartInfo;
use crate::sqlite::write::UnitApplier;
use crate::steps::Steps;
use crate::telemetry::CommitTelemetry;

pub(crate) struct Writer {
    connection: Connection,
    start: StartInfo,
    queue: Arc<WriteQueue<WriteJob>>,
    steps: Arc<Steps>,
    watch: CommitTelemetry,
}

/// Sends the result of a unit, when it is on the disk and not before.
pub(crate) type CommitReply = Box<dyn FnOnce(Result<(), StoreError>)>;

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        start: StartInfo,
        queue: Arc<WriteQueue<WriteJob>>,
        steps: Arc<Steps>,
        clock: Clock,
    ) -> Self {
        Writer { connection, start, queue, steps, watch: CommitTelemetry::new(clock) }
    }

    pub(crate) fn run(self) {
        let _last = PanicGuard(&self.queue);
        room::is_of(self.connection.path(), self.watch.clock());
        self.queue.drain(|together| self.commit(together));
    }

    /// Commits a batch. An error means that the store is broken.
    pub(crate) fn commit(&self, together: Vec<WriteJob>) -> Result<(), String> {
        let (units, began) = (together.len(), self.watch.now());
        let (mut work, mut replies) = (together.into_iter(), Vec::new());
        let outcome = self.begin().and_then(|()| work.try_for_each(|work| self.apply(work, &mut replies)));
        #[cfg(seawall_sabotage)]
        let mut replies = crate::sqlite::engine::sabotage::tell_early(replies);
        let outcome = outcome.and_then(|()| self.end());
        self.watch.ended(units, began, outcome.is_ok());
        replies.drain(..).for_each(|reply| reply(outcome.clone()));
        if let Err(error) = &outcome {
            work.for_each(|work| work.refuse(error));
        }
        match outcome {
            Err(StoreError::Broken(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    fn begin(&self) -> Result<(), StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| translate(&error))
    }

    fn end(&self) -> Result<(), StoreError> {
        let Err(error) = self.connection.execute_batch("COMMIT") else { return Ok(()) };
        match translate(&error) {
            // Nothing of it counts, nothing before it hangs on it, and the next one may go well.
            refused @ (StoreError::Full | StoreError::Damaged(_)) if self.roll_back() => Err(refused),
            refused if is_write(&error) && self.roll_back() => Err(refused),
            _ => Err(fatal(&error)),
        }
    }

    /// Rolls back the whole transaction, unless SQLite has done so by itself. Returns whether it is gone.
    fn roll_back(&self) -> bool {
        self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok()
    }

    /// Applies one unit. An error means that the whole transaction is gone, with the units before it.
    fn apply(&self, work: WriteJob, replies: &mut Vec<CommitReply>) -> Result<(), StoreError> {
        match work {
            WriteJob::Commit(unit, reply) => {
                let _marked = self.steps.has_suspects().then(|| self.steps.recording(&unit));
                let result = match &unit.changes[..] {
                    // They make several changes, and the others beside them must not pay for what is wrong with one.
                    [Change::Prune(_) | Change::AdvanceOperation(_) | Change::Index { .. }] => {
                        self.apply_in_savepoint(|changes| changes.unit(&unit))
                    }
                    [_] | [Change::ClaimKey(_), _] => self.apply_bare(|changes| changes.unit(&unit)),
                    _ => self.apply_in_savepoint(|changes| changes.unit(&unit)),
                };
                let outcome = self.check_transaction(&result);
                replies.push(Box::new(move |committed| drop(reply.send(committed.and(result)))));
                outcome
            }
            WriteJob::Take(now, room, reply) => {
                let taken = self
                    .apply_in_savepoint(|changes| changes.due(now, &room).map_err(|error| translate(&error)));
                let outcome = self.check_transaction(&taken);
                replies.push(Box::new(move |committed| drop(reply.send(committed.and(taken)))));
                outcome
            }
        }
    }

    /// Applies a unit with one change. Each change reads before it writes, so that an error means that nothing was written, and
    /// no savepoint is needed: that is a third of what a small unit costs. If one has written before it failed, the whole
    /// transaction is rolled back.
    fn apply_bare<T>(
        &self,
        apply: impl FnOnce(UnitApplier<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = self.connection.total_changes();
        let result = apply(UnitApplier::new(&self.connection, self.start));
        match &result {
            Err(error) if !self.connection.is_autocommit() && self.connection.total_changes() != before => {
                Err(if self.roll_back() { error.clone() } else { StoreError::Broken(error.to_string()) })
            }
            _ => result,
        }
    }

    /// Applies one unit, as a whole or not at all, whatever happens to the others beside it.
    fn apply_in_savepoint<T>(
        &self,
        apply: impl FnOnce(UnitApplier<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let run = |sql| {
            let done = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
            done.map_err(|error| translate(&error))
        };
        run("SAVEPOINT unit")?;
        let result = apply(UnitApplier::new(&self.connection, self.start));
        if self.connection.is_autocommit() {
            return result;
        }
        let undone = if result.is_err() { run("ROLLBACK TO unit").map(drop) } else { Ok(()) };
        if let Err(error) = undone.and_then(|()| run("RELEASE unit")) {
            // Half of a unit must not be committed with the others.
            return Err(if self.roll_back() { error } else { StoreError::Broken(error.to_string()) });
        }
        result
    }

    /// When the disk is full or fails in the middle, SQLite may take back the whole transaction and not only the statement.
    /// What follows would then each be a transaction of its own, and what went before would be acknowledged and not there.
    ///
    /// The error of one unit is not reported to the others: "its claim was lost" would end a delivery that nobody else has.
    fn check_transaction<T>(&self, result: &Result<T, StoreError>) -> Result<(), StoreError> {
        match result {
            Err(error @ StoreError::Broken(_)) => Err(error.clone()),
            Err(error @ (StoreError::Full | StoreError::Damaged(_))) if self.connection.is_autocommit() => {
                Err(error.clone())
            }
            Err(error) if self.connection.is_autocommit() => {
                Err(StoreError::Failed(format!("the transaction was rolled back: {error}")))
            }
            _ => Ok(()),
        }
    }
}

/// Runs a unit before anybody else writes, as a whole or not at all: the first of each start, and those that fill a new file.
pub(crate) fn at_start<T>(
    connection: &mut Connection,
    apply: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let unit = connection.transaction()?;
    let done = apply(&unit)?;
    unit.commit()?;
    Ok(done)
}

pub(crate) fn translate(error: &Error) -> StoreError {
    match error.sqlite_error().map(|error| error.extended_code) {
        // The second is what a full disk looks like to the index of the log, which is a file too.
        Some(ffi::SQLITE_FULL | ffi::SQLITE_IOERR_SHMSIZE) => StoreError::Full,
        Some(ffi::SQLITE_IOERR_WRITE) if room::is_short() => StoreError::Full,
        Some(code) if is_damage(code) => StoreError::Damaged(error.to_string()),
        // What the disk has is not known: the system may have thrown away what it could not write, and a second try that
        // goes well says nothing about it.
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => fatal(error),
        _ => StoreError::Failed(reason(error)),
    }
}

/// Returns the reason of an error. A row that can't be read says by itself which it is.
pub(crate) fn reason(error: &Error) -> String {
    match error {
        Error::FromSqlConversionFailure(_, _, source) if source.is::<UnreadableRow>() => source.to_string(),
        _ => error.to_string(),
    }
}

/// Whether a write has failed, and not a sync: nothing that was committed before is in doubt.
pub(crate) fn is_write(error: &Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_WRITE)
}

/// Whether something that was stored can't be read any more.
fn is_damage(code: i32) -> bool {
    let unreadable = [ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_CORRUPTFS, ffi::SQLITE_IOERR_DATA];
    // The lower byte says what it is, the others where it was found.
    matches!(code & 0xFF, ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB) || unreadable.contains(&code)
}

fn fatal(error: &Error) -> StoreError {
    let code = error.sqlite_error().map_or(0, |error| error.extended_code);
    StoreError::Broken(format!("what was written may not be on the disk: {error} (SQLite's code {code})"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use seawall_hub_core::domain::delivery::DeliveryId;
    use seawall_hub_core::domain::event::Event;
    use seawall_hub_core::domain::event_type::EventType;
    use seawall_hub_core::domain::time::Millis;
    use seawall_hub_core::port::store::{CommitResult, UnitOfWork};
    use tempfile::TempDir;
    use tokio::sync::oneshot::{self, Receiver};

    use super::*;
    use crate::sqlite::engine::schema;

    type Answer = Receiver<Result<CommitResult, StoreError>>;

    fn writer(folder: &TempDir) -> Writer {
        let mut connection = Connection::open(folder.path().join("seawall.db")).unwrap();
        let start = schema::prepare(&mut connection, &[]).unwrap();
        let steps = Steps::open(folder.path(), start.epoch).unwrap();
        Writer::new(connection, start, Arc::new(WriteQueue::new()), Arc::new(steps), Clock::system())
    }

    fn event(id: &str, bytes: usize) -> (WriteJob, Answer) {
        let event = Event {
            id: id.into(),
            kind: EventType::new("a").unwrap(),
            source: "test".into(),
            payload: vec![b'x'; bytes].into(),
            fingerprint: [0; 32],
            accepted: Millis(0),
            trace: None,
            considered: 0,
            filtered: 0,
        };
        let (sender, receiver) = oneshot::channel();
        let unit = UnitOfWork { changes: vec![Change::AddEvent(Arc::new(event), Vec::new())] };
        (WriteJob::Commit(unit, sender), receiver)
    }

    /// PRM-8. When there is no room in the middle of a transaction, SQLite takes back all of it. Then those before and after
    /// are refused too: what came after used to be a transaction of its own, and the end of the first one a fatal error.
    #[test]
    fn prm_8_a_transaction_that_is_taken_back_in_the_middle_is_refused_as_a_whole() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        let pages = |limit: u32| {
            writer.connection.pragma_update_and_check(None, "max_page_count", limit, |_| Ok(())).unwrap();
        };
        let events = || {
            let count = "SELECT count(*) FROM events";
            writer.connection.query_row(count, [], |row| row.get::<_, u32>(0)).unwrap()
        };
        pages(60);
        let (works, answers): (Vec<WriteJob>, Vec<Answer>) =
            [event("before", 10), event("huge", 400_000), event("after", 10)].into_iter().unzip();
        assert_eq!(writer.commit(works), Ok(()));
        for mut answer in answers {
            assert_eq!(answer.try_recv().unwrap(), Err(StoreError::Full));
        }
        assert_eq!(events(), 0);

        // With room it goes on.
        pages(10_000);
        let (work, mut answer) = event("huge", 400_000);
        assert_eq!(writer.commit(vec![work]), Ok(()));
        assert!(answer.try_recv().unwrap().is_ok());
        assert_eq!(events(), 1);
    }

    /// PRM-1: a unit that has written before it failed takes the others with it. They are not told its reason as theirs: a
    /// settlement that hears "not ours" takes its delivery for ended.
    #[test]
    fn prm_1_the_reason_of_one_unit_is_not_told_to_the_others() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        let foreign = StoreError::LeaseLost(DeliveryId::new(1, 1));
        writer.begin().unwrap();
        let result = writer.apply_bare(|changes| {
            changes.run("UPDATE meta SET epoch = epoch + 1", [])?;
            Err::<(), _>(foreign.clone())
        });
        assert_eq!(result, Err(foreign));
        assert!(matches!(writer.check_transaction(&result), Err(StoreError::Failed(_))));
        assert!(writer.connection.is_autocommit());
    }

    /// PRM-8: a caller who waits when the disk fails gets the reason. Callers used to get that the writer has ended, and
    /// those were the last words of the hub.
    #[test]
    fn prm_8_who_waits_when_the_disk_fails_hears_why() {
        let queue = WriteQueue::new();
        let (work, mut answer) = event("a", 1);
        queue.put(seawall_hub_core::port::store::WritePriority::Ingest, work).unwrap();
        queue.break_off("the disk");
        assert_eq!(answer.try_recv().unwrap(), Err(StoreError::Broken("the disk".into())));
    }

    /// PRM-8: a caller who waits for a writer that has panicked gets an error, and so does every later caller.
    #[test]
    fn prm_8_nobody_waits_for_a_writer_that_has_panicked() {
        let folder = TempDir::new().unwrap();
        let writer = writer(&folder);
        let queue = writer.queue.clone();
        let gone = thread::spawn(move || {
            let _last = PanicGuard(&writer.queue);
            panic!("a bug");
        });
        assert!(gone.join().is_err());
        let (work, _answer) = event("a", 1);
        let refused = queue.put(seawall_hub_core::port::store::WritePriority::Ingest, work);
        assert_eq!(refused, Err(StoreError::Broken("the writer has panicked".into())));
    }
}
