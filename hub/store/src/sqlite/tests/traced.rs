//! A writer without a thread, which says what it has run.

use std::cell::RefCell;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use seawall::Clock;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Change, CommitResult, LaneCapacity, StoreError, StoredDelivery, UnitOfWork,
};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::queue::{WriteJob, WriteQueue};
use crate::sqlite::engine::schema;
use crate::sqlite::engine::writer::Writer;
use crate::steps::Steps;

thread_local! {
    /// SQLite's hook is a plain function, so what it hears is kept beside it.
    static RAN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

#[expect(clippy::needless_pass_by_value, reason = "the hook has this signature")]
fn record(event: TraceEvent<'_>) {
    if let TraceEvent::Stmt(_, sql) = event {
        RAN.with_borrow_mut(|ran| ran.push(sql.to_owned()));
    }
}

/// Returns the statements that were run on this thread since the last call.
pub(super) fn ran() -> Vec<String> {
    RAN.take()
}

/// Records what is run on a connection from now on.
pub(super) fn trace(connection: &Connection) {
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(record));
}

/// A writer on an empty database.
pub(super) struct TracedWriter {
    writer: Writer,
    _folder: TempDir,
}

impl TracedWriter {
    pub(super) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let mut connection = Connection::open(folder.path().join("seawall.db")).unwrap();
        let start = schema::prepare(&mut connection, &[]).unwrap();
        trace(&connection);
        let steps = Arc::new(Steps::open(folder.path(), start.epoch).unwrap());
        let writer = Writer::new(connection, start, Arc::new(WriteQueue::new()), steps, Clock::system());
        TracedWriter { writer, _folder: folder }
    }

    /// Commits one unit.
    pub(super) fn commit(
        &self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<CommitResult, StoreError> {
        let (sender, mut answer) = oneshot::channel();
        let unit = UnitOfWork { changes: changes.into_iter().collect() };
        self.writer.commit(vec![WriteJob::Commit(unit, sender)]).unwrap();
        answer.try_recv().unwrap()
    }

    /// Claims what is due.
    pub(super) fn take(&self, now: Millis, room: Vec<LaneCapacity>) -> Vec<StoredDelivery> {
        let (sender, mut answer) = oneshot::channel();
        self.writer.commit(vec![WriteJob::Take(now, room, sender)]).unwrap();
        answer.try_recv().unwrap().unwrap()
    }
}
