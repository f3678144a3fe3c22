//! One file, one writer.
//!
//! # Why one writer thread?
//! SQLite lets one connection write at a time, and what costs is not the writing but the wait for the disk. So one thread
//! writes, takes everything that has queued up while it waited for the last commit, and commits it together: the more comes
//! at once, the more share one wait. There is no delay to gather more, so that a single event is as quick as the disk is.
//!
//! # What a power cut leaves
//! `synchronous=FULL` with a write-ahead log: a commit returns when the log is on the disk, and only then is anybody told.

pub mod backup;
mod engine;
mod filter;
mod read;
mod rows;
pub(crate) mod transfer;
mod write;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rusqlite::{Connection, OpenFlags};
use seawall::Clock;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    CommitResult, CrashHistory, DueTimes, IdempotencyRecord, LaneCapacity, StepMarks, StoreError,
    StoreHealth, StoredDelivery, UnitOfWork, UnitStore, WritePriority,
};
use seawall_hub_core::sync::Lock;
use tokio::sync::{Semaphore, oneshot};

use self::engine::place::{DATABASE, make_file_private, mark_lock, refuse_without_database};
pub(crate) use self::engine::place::{make_private, take_lock};
use self::engine::telemetry::DiskTelemetry;
use self::engine::writer::{Writer, reason, translate};
#[cfg(test)]
pub(crate) use self::filter::expression;
use crate::queue::{WriteJob, WriteQueue};
use crate::steps::{self, Steps};

/// The maximum number of concurrent readers.
const READERS_MAX: usize = 16;

/// The store on SQLite. A handle: clones share everything. When the last one is dropped, queued units are still written.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<SqliteInner>,
}

struct SqliteInner {
    queue: Arc<WriteQueue<WriteJob>>,
    steps: Arc<Steps>,
    /// Idle connections for readers.
    readers: Lock<Vec<Connection>>,
    /// Limits the readers: each connection holds files open, and a process may only hold a limited number.
    reading: Semaphore,
    path: PathBuf,
    /// The epoch of this process. Claims of earlier epochs are void.
    epoch: u64,
    disk: DiskTelemetry,
    writer: Option<thread::JoinHandle<()>>,
    /// Held for as long as the store is open, so that two processes never share a folder.
    _lock: File,
}

impl Sqlite {
    /// Opens the database in this folder, or creates one.
    pub fn open(folder: &Path, clock: &Clock) -> Result<Self, OpenError> {
        transfer::refuse_moved(folder)?;
        Sqlite::open_folder(folder, clock)
    }

    fn open_folder(folder: &Path, clock: &Clock) -> Result<Self, OpenError> {
        let failed = |what: &str, error: &dyn fmt::Display| {
            OpenError(format!("{what} `{}`: {error}", folder.display()))
        };
        make_private(folder).map_err(|error| failed("can't make the folder", &error))?;
        let lock = take_lock(folder)?;
        let path = folder.join(DATABASE);
        refuse_without_database(folder)?;
        make_file_private(&path).map_err(|error| failed("can't write to the folder", &error))?;
        let disk = DiskTelemetry::new(&path, clock.clone());
        let began = disk.now();
        let mut connection =
            Connection::open(&path).map_err(|error| failed("can't open the database in", &error))?;
        let damaged = engine::damage::found(&path, &connection);
        let start = engine::schema::prepare(&mut connection, &steps::left(folder))?;
        mark_lock(&lock).map_err(|error| failed("can't write to the folder", &error))?;
        let steps =
            Steps::open(folder, start.epoch).map_err(|error| failed("can't write to the folder", &error))?;
        let (queue, steps) = (Arc::new(WriteQueue::new()), Arc::new(steps));
        let writer = Writer::new(connection, start, queue.clone(), steps.clone(), clock.clone());
        let writer = thread::Builder::new().name("seawall store".into()).spawn(move || writer.run());
        let inner = SqliteInner {
            queue,
            steps,
            readers: Lock::default(),
            reading: Semaphore::new(READERS_MAX),
            path,
            epoch: start.epoch,
            disk,
            writer: Some(writer.map_err(|error| failed("can't start the writer for", &error))?),
            _lock: lock,
        };
        inner.disk.opened(start.epoch, began);
        damaged.iter().for_each(|error| inner.notice_damage(error));
        Ok(Sqlite { inner: Arc::new(inner) })
    }

    /// Returns why nothing is accepted any more, if part of the stored data can't be read.
    #[must_use]
    pub fn damaged(&self) -> Option<StoreError> {
        self.inner.queue.damaged().map(StoreError::Damaged)
    }

    /// Checkpoints the write-ahead log and empties it before the process stops: the next start has nothing to read but the
    /// database, and it can be copied as it is.
    pub async fn fold_log(&self) -> Result<(), StoreError> {
        let path = self.inner.path.clone();
        let folded = tokio::task::spawn_blocking(move || engine::place::fold_log(&path)).await;
        folded.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string())))
    }

    async fn ask<T: Send + 'static>(
        &self,
        lane: WritePriority,
        work: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriteJob,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.inner.queue.put(lane, work(sender))?;
        let answer = receiver.await.unwrap_or_else(|_| Err(ended()));
        self.inner.disk.answered(&answer);
        answer.inspect_err(|error| self.inner.notice_damage(error))
    }

    /// Runs a read on its own connection, beside whatever is being written.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let closed = |_| StoreError::Failed("the store is closed".into());
        let _permit = self.inner.reading.acquire().await.map_err(closed)?;
        let done = tokio::task::spawn_blocking(move || {
            let connection = inner.reader()?;
            let answer = read(&connection);
            inner.readers.lock().push(connection);
            answer
        });
        let error = match done.await {
            Ok(Ok(read)) => return Ok(read),
            Ok(Err(error)) => match translate(&error) {
                damaged @ StoreError::Damaged(_) => damaged,
                _ => StoreError::Failed(reason(&error)),
            },
            Err(error) => StoreError::Failed(error.to_string()),
        };
        self.inner.notice_damage(&error);
        Err(error)
    }
}

impl SqliteInner {
    fn reader(&self) -> rusqlite::Result<Connection> {
        let idle = self.readers.lock().pop();
        idle.map_or_else(|| Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY), Ok)
    }
}

impl Drop for SqliteInner {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // It ends when the queue is empty. A panic in it was told to those who waited.
            let _ = writer.join();
        }
    }
}

impl UnitStore for Sqlite {
    async fn commit(&self, lane: WritePriority, unit: UnitOfWork) -> Result<CommitResult, StoreError> {
        self.ask(lane, |reply| WriteJob::Commit(unit, reply)).await
    }

    async fn commit_all(
        &self,
        lane: WritePriority,
        units: Vec<UnitOfWork>,
    ) -> Vec<Result<CommitResult, StoreError>> {
        // All of them are queued before the first is waited for.
        let asked: Vec<_> = units
            .into_iter()
            .map(|unit| {
                let (sender, receiver) = oneshot::channel();
                self.inner.queue.put(lane, WriteJob::Commit(unit, sender)).map(|()| receiver)
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for asked in asked {
            let answer = match asked {
                Ok(receiver) => receiver.await.unwrap_or_else(|_| Err(ended())),
                Err(error) => Err(error),
            };
            self.inner.disk.answered(&answer);
            answers.push(answer.inspect_err(|error| self.inner.notice_damage(error)));
        }
        answers
    }

    async fn claimed(&self, scope: &'static str, key: &str) -> Result<Option<IdempotencyRecord>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| read::idempotency::claimed(connection, scope, &key)).await
    }

    async fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        self.ask(WritePriority::Outcomes, |reply| WriteJob::Take(now, room, reply)).await
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        self.inner.steps.clone()
    }

    async fn quarantine_candidates(&self) -> Result<Vec<(StoredDelivery, CrashHistory)>, StoreError> {
        let epoch = self.inner.epoch;
        self.read(move |connection| read::restart::quarantine_candidates(connection, epoch)).await
    }

    async fn next_due(&self) -> Result<Vec<DueTimes>, StoreError> {
        self.read(read::deliveries::next_due).await
    }

    fn health(&self) -> StoreHealth {
        self.inner.disk.health(self.inner.queue.refused())
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch
    }

    async fn broken(&self) -> StoreError {
        StoreError::Broken(self.inner.queue.broken().await)
    }

    fn record_gauges(&self) {
        self.inner.disk.record_gauges(self.inner.queue.waiting());
    }
}

fn ended() -> StoreError {
    StoreError::Broken("the writer has stopped".into())
}

/// The reason why a database can't be opened, and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError(pub(crate) String);

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SqliteInner { path, epoch, .. } = &*self.inner;
        f.debug_struct("Sqlite").field("path", path).field("epoch", epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
