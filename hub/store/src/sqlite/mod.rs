//! One file, one writer.
//!
//! # Why one writer thread?
//! SQLite lets one connection write at a time, and what costs is not the writing but the wait for the disk. So one thread
//! writes, takes everything that has queued up while it waited for the last commit, and commits it together: the more comes
//! at once, the more share one wait. There is no delay to gather more, so that a single event is as quick as the disk is.
//!
//! # What a power cut leaves
//! `synchronous=FULL` with a write-ahead log: a commit returns when the log is on the disk, and only then is anybody told.

mod access;
mod alerts;
pub mod backup;
mod changes;
mod crash;
mod damage;
mod deliveries;
mod desk;
mod desk_reads;
mod desk_store;
mod filter;
mod letters;
mod lists;
mod once;
mod place;
mod prune;
mod queue;
mod reads;
mod room;
mod rows;
#[cfg(seawall_sabotage)]
mod sabotage;
mod schema;
mod steps;
mod times;
mod unit_of_work;
mod watch;
mod words;
mod work;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::{Connection, OpenFlags};
use seawall_dist::deadletter::Attempt;
use seawall_hub_core::domain::alert::Incident;
use seawall_hub_core::domain::audit::AuditEntry;
use seawall_hub_core::domain::circuit::Circuit;
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::event::Event;
use seawall_hub_core::domain::retention::Limits;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{
    Census, Committed, DeliveryFilter, Due, EventFilter, Evidence, Health, IncidentFilter, Kept, OldEvents,
    Page, PageAt, Registered, Room, StepMarks, Store, StoreError, Unit, Urgency, Whose,
};
use tokio::sync::{Semaphore, oneshot};

use self::place::{DATABASE, make_file_private, make_private, mark_lock, refuse_without_database, take_lock};
use self::queue::{Queue, Work};
use self::steps::Steps;
use self::unit_of_work::{Writer, translate};
use self::watch::Disk;

/// So many read at once.
const READERS_MAX: usize = 16;

/// The store on SQLite. A handle: clones share everything. When the last one goes, what is queued is still written.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<Queue>,
    steps: Arc<Steps>,
    /// Connections that only read, for as many as read at once.
    readers: Mutex<Vec<Connection>>,
    /// So many read at once: each connection holds files open, and a process may only hold so many.
    reading: Semaphore,
    path: PathBuf,
    /// Of this start. What other starts had in hand is void.
    epoch: u64,
    disk: Disk,
    writer: Option<thread::JoinHandle<()>>,
    /// Held for as long as the store is open, so that two processes never share a folder.
    _lock: File,
}

impl Sqlite {
    /// Opens the database in this folder, or makes one.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let failed = |what: &str, error: &dyn fmt::Display| {
            OpenError(format!("{what} `{}`: {error}", folder.display()))
        };
        make_private(folder).map_err(|error| failed("can't make the folder", &error))?;
        let lock = take_lock(folder)?;
        let path = folder.join(DATABASE);
        refuse_without_database(folder)?;
        make_file_private(&path).map_err(|error| failed("can't write to the folder", &error))?;
        let disk = Disk::new(&path);
        let began = disk.now();
        let mut connection =
            Connection::open(&path).map_err(|error| failed("can't open the database in", &error))?;
        let damaged = damage::found(&path, &connection);
        let start = schema::prepare(&mut connection, &steps::left(folder))?;
        mark_lock(&lock).map_err(|error| failed("can't write to the folder", &error))?;
        let steps =
            Steps::open(folder, start).map_err(|error| failed("can't write to the folder", &error))?;
        let (queue, steps) = (Arc::new(Queue::new()), Arc::new(steps));
        let writer = Writer::new(connection, start, queue.clone(), steps.clone());
        let writer = thread::Builder::new().name("seawall store".into()).spawn(move || writer.run());
        let inner = Inner {
            queue,
            steps,
            readers: Mutex::default(),
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

    /// How often this database has been opened.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.inner.epoch
    }

    /// Records what there is now: what waits to be written, and how large the log is.
    pub fn record_gauges(&self) {
        self.inner.disk.record_gauges(self.inner.queue.waiting());
    }

    /// Why nothing is accepted any more, if part of what was stored can't be read.
    #[must_use]
    pub fn damaged(&self) -> Option<StoreError> {
        self.inner.queue.damaged().map(StoreError::Damaged)
    }

    /// Folds the log back into the database, and leaves it empty. For whoever stops: the next start has nothing to read but the
    /// database, and it can be copied as it is.
    pub async fn fold_log(&self) -> Result<(), StoreError> {
        let path = self.inner.path.clone();
        let folded = tokio::task::spawn_blocking(move || place::fold_log(&path)).await;
        folded.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string())))
    }

    /// Waits until the store can't be trusted any more, also while nobody writes.
    pub async fn broken(&self) -> StoreError {
        StoreError::Fatal(self.inner.queue.broken().await)
    }

    async fn ask<T: Send + 'static>(
        &self,
        lane: Urgency,
        work: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Work,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.inner.queue.put(lane, work(sender))?;
        let answer = receiver.await.unwrap_or_else(|_| Err(ended()));
        self.inner.answered(&answer);
        answer
    }

    /// Reads on a connection of its own, beside whatever is being written.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let closed = |_| StoreError::Failed("nobody reads any more".into());
        let _one_of_them = self.inner.reading.acquire().await.map_err(closed)?;
        let done = tokio::task::spawn_blocking(move || {
            let connection = inner.reader()?;
            let answer = read(&connection);
            inner.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            answer
        });
        let error = match done.await {
            Ok(Ok(read)) => return Ok(read),
            Ok(Err(error)) => match translate(&error) {
                damaged @ StoreError::Damaged(_) => damaged,
                _ => StoreError::Failed(error.to_string()),
            },
            Err(error) => StoreError::Failed(error.to_string()),
        };
        self.inner.notice_damage(&error);
        Err(error)
    }
}

impl Inner {
    fn reader(&self) -> rusqlite::Result<Connection> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY), Ok)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            // It ends when the queue is empty. A panic in it was told to those who waited.
            let _ = writer.join();
        }
    }
}

impl Store for Sqlite {
    async fn commit(&self, lane: Urgency, unit: Unit) -> Result<Committed, StoreError> {
        self.ask(lane, |reply| Work::Commit(unit, reply)).await
    }

    async fn commit_all(&self, lane: Urgency, units: Vec<Unit>) -> Vec<Result<Committed, StoreError>> {
        // All of them are queued before the first is waited for.
        let asked: Vec<_> = units
            .into_iter()
            .map(|unit| {
                let (sender, receiver) = oneshot::channel();
                self.inner.queue.put(lane, Work::Commit(unit, sender)).map(|()| receiver)
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for asked in asked {
            let answer = match asked {
                Ok(receiver) => receiver.await.unwrap_or_else(|_| Err(ended())),
                Err(error) => Err(error),
            };
            self.inner.answered(&answer);
            answers.push(answer);
        }
        answers
    }

    async fn registered(&self) -> Result<Registered, StoreError> {
        self.read(reads::registered).await
    }

    async fn rule_versions(&self, name: &Slug) -> Result<Vec<Rule>, StoreError> {
        let name = name.clone();
        self.read(move |connection| reads::rule_versions(connection, &name)).await
    }

    async fn circuit_history(&self, service: &Slug, most: usize) -> Result<Vec<Circuit>, StoreError> {
        let service = service.clone();
        self.read(move |connection| reads::circuit_history(connection, &service, most)).await
    }

    async fn event(&self, id: &str, source: Option<&str>) -> Result<Option<Event>, StoreError> {
        let (id, source) = (id.to_owned(), source.map(ToOwned::to_owned));
        self.read(move |connection| lists::event(connection, &id, source.as_deref())).await
    }

    async fn events(&self, filter: EventFilter, page: PageAt) -> Result<Page<Event>, StoreError> {
        self.read(move |connection| lists::events(connection, &filter, page)).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<(Kept, Vec<Attempt>)>, StoreError> {
        self.read(move |connection| lists::delivery(connection, id)).await
    }

    async fn deliveries(&self, filter: DeliveryFilter, page: PageAt) -> Result<Page<Kept>, StoreError> {
        self.read(move |connection| lists::deliveries(connection, &filter, page)).await
    }

    async fn audit(&self, page: PageAt) -> Result<Page<AuditEntry>, StoreError> {
        self.read(move |connection| lists::audit(connection, page)).await
    }

    async fn live_incidents(&self) -> Result<Vec<Incident>, StoreError> {
        self.read(alerts::live_incidents).await
    }

    async fn incident(&self, id: &str) -> Result<Option<Incident>, StoreError> {
        let id = id.to_owned();
        self.read(move |connection| alerts::incident(connection, &id)).await
    }

    async fn incidents(&self, filter: IncidentFilter, page: PageAt) -> Result<Page<Incident>, StoreError> {
        self.read(move |connection| alerts::incidents(connection, &filter, page)).await
    }

    async fn dead_since(&self, since: Millis, most: u32) -> Result<Vec<(Slug, u32)>, StoreError> {
        self.read(move |connection| alerts::dead_since(connection, since, most)).await
    }

    fn health(&self) -> Health {
        self.inner.disk.health(self.inner.queue.refused())
    }

    async fn pending(&self, whose: Whose, most: u32) -> Result<u32, StoreError> {
        self.read(move |connection| reads::pending(connection, &whose, most)).await
    }

    async fn census(&self, services: Vec<Slug>, most: u32) -> Result<Census, StoreError> {
        self.read(move |connection| reads::census(connection, services, most)).await
    }

    async fn take_due(&self, now: Millis, room: Vec<Room>) -> Result<Vec<Kept>, StoreError> {
        self.ask(Urgency::Outcomes, |reply| Work::Take(now, room, reply)).await
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        self.inner.steps.clone()
    }

    async fn convicts(&self) -> Result<Vec<(Kept, Evidence)>, StoreError> {
        let epoch = self.inner.epoch;
        self.read(move |connection| crash::convicts(connection, epoch)).await
    }

    async fn next_due(&self) -> Result<Vec<Due>, StoreError> {
        self.read(reads::next_due).await
    }

    async fn old_events(&self, limits: Limits, behind: u64) -> Result<OldEvents, StoreError> {
        self.read(move |connection| prune::old_events(connection, limits, behind)).await
    }
}

fn ended() -> StoreError {
    StoreError::Fatal("the writer has ended".into())
}

/// Why a database could not be opened, and what to do.
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
        let Inner { path, epoch, .. } = &*self.inner;
        f.debug_struct("Sqlite").field("path", path).field("epoch", epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
