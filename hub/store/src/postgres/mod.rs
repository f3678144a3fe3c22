//! The store on PostgreSQL.
//!
//! # Who does what
//! Two tasks write, each on a connection; a few connections read; one more shows that the process lives. All of them are on threads
//! of the store, so that nothing that the hub does meanwhile delays them, and none of them depends on another's connection.
//!
//! # What if the database is away?
//! A unit waits for it two seconds at most and is then refused as unavailable; the connections come back by themselves. The
//! process ends only if something stored can't be read, or if another process has taken over.

mod engine;
mod parts;
mod read;
mod rows;
mod status;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod transfer;
mod words;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use metrics::gauge;
use seawall::Clock;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::metric_names;
use seawall_hub_core::port::store::{
    CommitResult, CrashHistory, DueTimes, IdempotencyRecord, LaneCapacity, StepMarks, StoreError,
    StoreHealth, StoredDelivery, UnitOfWork, UnitStore, WritePriority,
};
use tokio::sync::{Notify, oneshot};

use self::engine::address::Address;
use self::engine::connect::Connector;
use self::engine::control::{self, Start};
use self::engine::fault::QueryError;
use self::engine::link::Link;
use self::engine::node::{HubNode, SLOTS};
use self::engine::reader::{QueryFuture, Readers};
use self::engine::session::Session;
use self::engine::tasks::{TimedJob, WriteTask};
use self::engine::telemetry::ConnectTelemetry;
use self::engine::thread::RuntimeThread;
use self::engine::tls;
use self::engine::writer::Transactor;
use self::read::READER_SETTINGS;
use self::write::WRITER_SETTINGS;
use crate::OpenError;
use crate::queue::{PanicGuard, WriteJob, WriteQueue};
use crate::sqlite::make_private;
use crate::steps::Steps;
use crate::telemetry::{AnswerTelemetry, CommitTelemetry};

/// How the store is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// The address of the database, `postgres://user:password@host:5432/database?sslmode=verify-full`.
    pub url: String,
    /// The folder of the process for what is not in the database.
    pub data_folder: PathBuf,
    /// The name of the hub, for whoever looks who uses the database.
    pub name: String,
}

impl PostgresOptions {
    /// Creates the options of a hub that is called as its machine is.
    #[must_use]
    pub fn new(url: &str, data_folder: &Path) -> Self {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("seawall").to_owned();
        PostgresOptions { url: url.to_owned(), data_folder: data_folder.to_owned(), name }
    }

    /// Returns what makes connections to this database.
    fn connector(&self, clock: &Clock) -> Result<Connector, OpenError> {
        let address = Address::parse(&self.url, &format!("seawall hub {}", self.name))?;
        let telemetry = Arc::new(ConnectTelemetry::new(clock.clone()));
        Ok(Connector { tls: tls::connector(&address.tls)?, address, telemetry, settings: "" })
    }
}

/// The store on PostgreSQL. A handle: clones share everything. When the last one is dropped, queued units are still written.
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<PostgresInner>,
}

struct PostgresInner {
    queue: Arc<WriteQueue<TimedJob>>,
    node: Arc<HubNode>,
    steps: Arc<Steps>,
    readers: Arc<Readers>,
    answers: AnswerTelemetry,
    clock: Clock,
    address: Address,
    /// Makes connections that may write.
    connector: Connector,
    threads: StoreThreads,
}

/// The threads of the store, in the sequence in which they end.
struct StoreThreads {
    writer: RuntimeThread,
    reader: RuntimeThread,
    stop_reading: Arc<Notify>,
    control: RuntimeThread,
    stop_control: Arc<Notify>,
}

impl Postgres {
    /// Opens the database, and creates its tables if it is empty. Only one process may have it open.
    pub async fn open(options: &PostgresOptions, clock: &Clock) -> Result<Self, OpenError> {
        let answers = AnswerTelemetry::new(clock.clone());
        let began = answers.now();
        let folder = &options.data_folder;
        let failed =
            |what: &str, error: &std::io::Error| OpenError(format!("{what} `{}`: {error}", folder.display()));
        make_private(folder).map_err(|error| failed("can't make the folder", &error))?;
        let connector = options.connector(clock)?;
        let (address, writable) = (connector.address.clone(), connector.clone());
        let queue = Arc::new(WriteQueue::new());
        let stop_control = Arc::new(Notify::new());
        let (joined, join) = oneshot::channel();
        let start = Start {
            connector: connector.clone(),
            name: options.name.clone(),
            data_folder: folder.clone(),
            clock: clock.clone(),
        };
        let (stop, told) = (stop_control.clone(), queue.clone());
        let lost = move |reason: &str| WriteQueue::break_off(&told, reason);
        let control = RuntimeThread::start("seawall node", move || control::run(start, joined, stop, lost))
            .map_err(|error| failed("can't start the store for", &error))?;
        let node =
            join.await.unwrap_or_else(|_| Err(OpenError("the store has ended while it started".into())))?;
        let steps = Steps::open(folder, node.id().epoch)
            .map_err(|error| failed("can't write to the folder", &error))?;
        let steps = Arc::new(steps);
        let writers = Writers {
            connector: connector.clone(),
            queue: queue.clone(),
            node: node.clone(),
            steps: steps.clone(),
            clock: clock.clone(),
        };
        let writer = RuntimeThread::start("seawall store", move || writers.run())
            .map_err(|error| failed("can't start the writers for", &error))?;
        let stop_reading = Arc::new(Notify::new());
        let reading = Connector { settings: READER_SETTINGS, ..connector };
        let stop = stop_reading.clone();
        let reader = RuntimeThread::start("seawall reader", move || async move { stop.notified().await })
            .map_err(|error| failed("can't start the readers for", &error))?;
        let readers = Arc::new(Readers::new(reading, node.clone(), reader.handle.clone(), clock.clone()));
        answers.opened(node.id().epoch, began);
        let threads = StoreThreads { writer, reader, stop_reading, control, stop_control };
        let inner = PostgresInner {
            queue,
            node,
            steps,
            readers,
            answers,
            clock: clock.clone(),
            address,
            threads,
            connector: writable,
        };
        Ok(Postgres { inner: Arc::new(inner) })
    }

    /// Returns why nothing is accepted any more, if part of the stored data can't be read.
    #[must_use]
    pub fn damaged(&self) -> Option<StoreError> {
        self.inner.queue.damaged().map(StoreError::Damaged)
    }

    fn put(&self, lane: WritePriority, job: WriteJob) -> Result<(), StoreError> {
        self.inner.queue.put(lane, TimedJob { job, since: self.inner.clock.precise() })
    }

    /// Tells of an answer, and accepts nothing more once something can't be read.
    fn noticed<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.inner.answers.answered(&answer);
        answer.inspect_err(|error| self.notice_damage(error))
    }

    fn notice_damage(&self, error: &StoreError) {
        if let StoreError::Damaged(reason) = error
            && self.inner.queue.damage(reason)
        {
            self.inner.answers.damaged(error);
        }
    }

    /// Runs a query on a connection of its own, beside whatever is being written. It may run twice.
    async fn read<A, T, E>(
        &self,
        args: A,
        query: impl for<'a> Fn(&'a Session, &'a A) -> QueryFuture<'a, T, E> + Send + 'static,
    ) -> Result<T, StoreError>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: QueryError + 'static,
    {
        let answer = self.inner.readers.read(args, query).await;
        answer.inspect_err(|error| self.notice_damage(error))
    }
}

/// What the thread of the writers needs.
struct Writers {
    connector: Connector,
    queue: Arc<WriteQueue<TimedJob>>,
    node: Arc<HubNode>,
    steps: Arc<Steps>,
    clock: Clock,
}

impl Writers {
    async fn run(self) {
        let _last = PanicGuard(&self.queue);
        let task = |slot: i16, lanes| WriteTask {
            lanes,
            queue: self.queue.clone(),
            transactor: Transactor::new(
                Link::new(
                    Connector { settings: WRITER_SETTINGS, ..self.connector.clone() },
                    self.node.clone(),
                ),
                self.node.clone(),
                slot,
            ),
            node: self.node.clone(),
            stray: Vec::new(),
            steps: self.steps.clone(),
            telemetry: CommitTelemetry::new(self.clock.clone()),
        };
        tokio::join!(
            task(SLOTS[0], [WritePriority::Ingest, WritePriority::Outcomes]).run(),
            task(SLOTS[1], [WritePriority::Admin, WritePriority::Retention]).run()
        );
    }
}

impl Drop for PostgresInner {
    fn drop(&mut self) {
        self.queue.close();
        self.threads.writer.join();
        self.threads.stop_reading.notify_one();
        self.threads.reader.join();
        self.threads.stop_control.notify_one();
        self.threads.control.join();
    }
}

impl UnitStore for Postgres {
    async fn commit(&self, lane: WritePriority, unit: UnitOfWork) -> Result<CommitResult, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.put(lane, WriteJob::Commit(unit, reply))?;
        self.noticed(answer.await.unwrap_or_else(|_| Err(ended())))
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
                let (reply, answer) = oneshot::channel();
                self.put(lane, WriteJob::Commit(unit, reply)).map(|()| answer)
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for asked in asked {
            let answer = match asked {
                Ok(answer) => answer.await.unwrap_or_else(|_| Err(ended())),
                Err(error) => Err(error),
            };
            answers.push(self.noticed(answer));
        }
        answers
    }

    async fn claimed(&self, scope: &'static str, key: &str) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.read((scope, key.to_owned()), |session, (scope, key)| {
            Box::pin(read::idempotency::claimed(session, scope, key))
        })
        .await
    }

    async fn take_due(
        &self,
        now: Millis,
        room: Vec<LaneCapacity>,
    ) -> Result<Vec<StoredDelivery>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.put(WritePriority::Outcomes, WriteJob::Take(now, room, reply))?;
        self.noticed(answer.await.unwrap_or_else(|_| Err(ended())))
    }

    fn step_marks(&self) -> Arc<dyn StepMarks> {
        self.inner.steps.clone()
    }

    async fn quarantine_candidates(&self) -> Result<Vec<(StoredDelivery, CrashHistory)>, StoreError> {
        self.read(self.inner.node.id().epoch, |session, epoch| {
            Box::pin(write::restart::quarantine_candidates(session, *epoch))
        })
        .await
    }

    async fn next_due(&self) -> Result<Vec<DueTimes>, StoreError> {
        self.read((), |session, ()| Box::pin(write::claims::next_due(session))).await
    }

    fn health(&self) -> StoreHealth {
        self.inner.answers.health(self.inner.queue.refused(), None)
    }

    fn epoch(&self) -> u64 {
        self.inner.node.id().epoch
    }

    async fn broken(&self) -> StoreError {
        StoreError::Broken(self.inner.queue.broken().await)
    }

    fn record_gauges(&self) {
        self.inner.answers.record_queue(self.inner.queue.waiting());
        let contact = self.inner.node.contact();
        gauge!(metric_names::DATABASE_UP).set(if contact.is_there { 1.0 } else { 0.0 });
        gauge!(metric_names::DATABASE_BEAT_AGE).set(contact.beat_age.as_secs_f64());
        gauge!(metric_names::DATABASE_ROUND_TRIP).set(contact.round_trip.as_secs_f64());
        gauge!(metric_names::DATABASE_CONNECTIONS).set(self.inner.connector.telemetry.count() as f64);
        let oldest = self.inner.queue.oldest(|job| job.since);
        let age = oldest.map_or(Duration::ZERO, |since| self.inner.clock.precise().since(since));
        gauge!(metric_names::DATABASE_OLDEST_UNIT).set(age.as_secs_f64());
    }
}

fn ended() -> StoreError {
    StoreError::Broken("the writer has ended".into())
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL has a password.
        let PostgresOptions { data_folder, name, url: _ } = self;
        f.debug_struct("PostgresOptions")
            .field("data_folder", data_folder)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PostgresInner { address, node, .. } = &*self.inner;
        f.debug_struct("Postgres")
            .field("address", address)
            .field("epoch", &node.id().epoch)
            .finish_non_exhaustive()
    }
}
