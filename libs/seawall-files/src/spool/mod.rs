//! A folder on disk that takes uploads while the store is away, and sends them later.
#![doc = ""]
#![doc = include_str!("../../docs/spool.md")]

mod config;
mod dead;
mod durable;
mod folder;
mod letter_json;
mod letters;
mod lines;
mod metrics;
mod room;
mod row;
mod sender;
mod staged;

pub use config::{SPOOL_BYTES_MAX, SpoolBuilder};
pub use dead::{REASON_ATTEMPTS, REASON_CORRUPT, REASON_REFUSED};
pub use letters::DeadFiles;
#[cfg(feature = "metrics")]
pub(crate) use metrics::METRICS;
pub use sender::{POLL_INTERVAL, SEND_BACKOFF, SEND_BACKOFF_MAX, STRIKES_MAX, SendReport, SpoolSender};
pub(crate) use staged::{StagedFile, WriteFailure};

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::Clock;
use seawall_dist::Millis;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::body::FileBody;
use crate::error::FileError;
use crate::name::{FileId, content_type};
use crate::store::{FileContent, FileMetadata};
use folder::Folder;
use metrics::SpoolMetrics;
use room::Room;
pub(crate) use row::Row;

/// How long the disk may take for one step. One that hangs must not hold its callers for ever.
const DISK_TIMEOUT: Duration = Duration::from_secs(30);

/// A folder of uploads that wait for their store.
///
/// A handle: clones share everything. Several processes may write into one folder; one of them sends.
#[derive(Clone)]
pub struct Spool {
    shared: Arc<SharedSpool>,
}

struct SharedSpool {
    folder: Folder,
    room: Room,
    clock: Clock,
    /// Tells the sender of this process that there is something to send.
    wake: Notify,
    metrics: SpoolMetrics,
}

/// How much waits in a spool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SpoolStats {
    /// The number of files that wait to be sent.
    pub files: u64,
    /// The bytes of all files in the spool, those that were given up included.
    pub bytes: u64,
    /// When the oldest file that waits was accepted.
    pub oldest: Option<Millis>,
}

impl Spool {
    /// Chooses the folder, which is created if it is missing. It must be on a disk that outlives the process.
    pub fn builder(folder: impl Into<PathBuf>) -> SpoolBuilder {
        SpoolBuilder::new(folder.into())
    }

    /// How much waits now.
    pub async fn stats(&self) -> Result<SpoolStats, FileError> {
        let stats = self.blocking("counting the files of the spool", |spool| spool.folder.stats()).await?;
        self.shared.metrics.measured(&stats, self.now());
        Ok(stats)
    }

    /// The files that were given up, as dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> DeadFiles {
        DeadFiles::new(self.clone())
    }

    /// Begins to write a file that is not yet accepted.
    pub(crate) async fn stage(&self) -> Result<StagedFile, FileError> {
        StagedFile::create(self.clone()).await
    }

    /// Accepts a file: when this returns, a crash of the process or of the machine does not lose it.
    pub(crate) async fn accept(&self, staged: StagedFile, row: Row) -> Result<(), FileError> {
        self.blocking("accepting a file into the spool", move |spool| spool.folder.accept(staged, &row))
            .await?;
        self.shared.metrics.accepted();
        self.shared.wake.notify_one();
        Ok(())
    }

    /// The file, if it is here: not sent yet, or given up.
    pub(crate) async fn find(
        &self,
        id: &FileId,
        range: Option<Range<u64>>,
    ) -> Result<Option<FileContent>, FileError> {
        let wanted = id.clone();
        let open =
            self.blocking("reading a file of the spool", move |spool| spool.folder.open(&wanted)).await?;
        let Some((file, bytes)) = open else { return Ok(None) };
        let metadata =
            FileMetadata { bytes, content_type: Some(content_type(id.name()).to_owned()), etag: None };
        let mut file = tokio::fs::File::from_std(file);
        let body = match range {
            None => FileBody::from_reader(file),
            Some(range) => {
                let sought = file.seek(io::SeekFrom::Start(range.start)).await;
                sought.map_err(|error| FileError::disk("reading a file of the spool", error))?;
                FileBody::from_reader(file.take(range.end.saturating_sub(range.start)))
            }
        };
        Ok(Some(FileContent { metadata, body }))
    }

    /// The size of the file, if it is here.
    pub(crate) async fn size(&self, id: &FileId) -> Result<Option<u64>, FileError> {
        let id = id.clone();
        let open = self.blocking("looking into the spool", move |spool| spool.folder.open(&id)).await?;
        Ok(open.map(|(_, bytes)| bytes))
    }

    /// Forgets the file, so that it is not sent. Returns false if it was not here.
    pub(crate) async fn forget(&self, id: &FileId) -> Result<bool, FileError> {
        let id = id.clone();
        self.blocking("deleting a file of the spool", move |spool| spool.folder.forget(&id)).await
    }

    /// The time of the wall, which rows are sorted by.
    pub(crate) fn now(&self) -> Millis {
        let since = self.shared.clock.wall().duration_since(std::time::SystemTime::UNIX_EPOCH);
        Millis(0) + since.unwrap_or_default()
    }

    /// Runs a step on the disk, away from the threads that other futures need.
    async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        step: impl FnOnce(&SharedSpool) -> io::Result<T> + Send + 'static,
    ) -> Result<T, FileError> {
        self.blocking_for(DISK_TIMEOUT, action, step).await
    }

    async fn blocking_for<T: Send + 'static>(
        &self,
        limit: Duration,
        action: &'static str,
        step: impl FnOnce(&SharedSpool) -> io::Result<T> + Send + 'static,
    ) -> Result<T, FileError> {
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || step(&shared));
        let result = match timeout(limit, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(io::Error::other(panic)),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the disk did not answer in time")),
        };
        result.map_err(|error| FileError::disk(action, error))
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").field("folder", &self.shared.folder.root()).finish_non_exhaustive()
    }
}

/// The number of bytes of all pieces.
pub(crate) fn bytes_of(pieces: &[Bytes]) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}
