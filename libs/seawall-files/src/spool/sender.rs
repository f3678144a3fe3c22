//! Sends what waits in a spool.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::fault::Verdict;
use seawall::{Backoff, Clock, Tick};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use super::dead::{REASON_ATTEMPTS, REASON_CORRUPT, REASON_REFUSED};
use super::folder::QueueEntry;
use super::row::{Row, RowAttempt};
use super::staged::hexadecimal;
use super::{SharedSpool, Spool, lines};
use crate::body::FileBody;
use crate::error::{FileError, FileErrorKind};
use crate::store::FileStore;

/// The wait after a round that failed. It doubles with each further one.
pub const SEND_BACKOFF: Duration = Duration::from_secs(1);

/// The longest wait after a round that failed: the store is back for at most this long before it is noticed.
pub const SEND_BACKOFF_MAX: Duration = Duration::from_secs(60);

/// How often the folder is looked into, for files of other processes.
pub const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// A file is given up when it has failed this often while another one behind it was sent. An outage gives up nothing.
pub const STRIKES_MAX: u64 = 10;

/// How long the bytes of one file may take to be checked before they are sent.
const CHECK_TIMEOUT: Duration = Duration::from_secs(600);

/// Files that fail in a row before a round ends: one may be the fault of the file, two are the fault of the store.
const FAILURES_PER_ROUND: usize = 2;

/// Sends the files of a [`Spool`] to their store, in the order in which they were accepted.
///
/// At most one sender works on a folder, whatever process it is in; others wait for their turn. A crash at any point loses
/// nothing: a file may be sent twice, under the same key with the same bytes.
#[derive(Clone)]
pub struct SpoolSender {
    spool: Spool,
    store: Arc<dyn FileStore>,
    backoff: Backoff,
    poll_interval: Duration,
    clock: Clock,
}

/// What one round of a sender did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SendReport {
    /// The number of files that were sent.
    pub sent: u64,
    /// The number of files that failed and are sent later.
    pub failed: u64,
    /// The number of files that were given up.
    pub dead: u64,
    /// Whether another sender works on the folder, so that nothing was done.
    pub is_busy: bool,
    /// When to come back, if the store or its circuit says so.
    pub retry_after: Option<Duration>,
}

/// What became of one file.
enum Outcome {
    Sent,
    /// The file was deleted meanwhile, or given up before a crash.
    Gone,
    Dead,
    Failed,
    /// The circuit is open: nothing was tried.
    Refused(Option<Duration>),
}

impl SpoolSender {
    /// Creates a sender. Run it in a task of its own; one that does not run leaves everything where it is.
    #[must_use]
    pub fn new(spool: Spool, store: Arc<dyn FileStore>) -> Self {
        let backoff = Backoff::exponential(SEND_BACKOFF).cap(SEND_BACKOFF_MAX);
        SpoolSender { spool, store, backoff, poll_interval: POLL_INTERVAL, clock: Clock::system() }
    }

    /// Sets the waits after rounds that failed; from [`SEND_BACKOFF`] to [`SEND_BACKOFF_MAX`] unless told.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how often the folder is looked into; [`POLL_INTERVAL`] unless told. Files of this process are sent at once.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sends until `shutdown` ends. A file that is being sent then stays in the spool.
    pub async fn run(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        let mut failures: u32 = 0;
        let mut lock = None;
        loop {
            let round = tokio::select! {
                biased;
                () = &mut shutdown => return,
                round = self.round(&mut lock) => round,
            };
            let wait = match round {
                Ok(report) if report.failed == 0 && report.retry_after.is_none() => {
                    failures = 0;
                    self.poll_interval
                }
                Ok(report) => {
                    failures = failures.saturating_add(1);
                    self.wait_after(failures)
                        .max(report.retry_after.unwrap_or_default().min(SEND_BACKOFF_MAX))
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    lines::round_failed(&error);
                    self.wait_after(failures)
                }
            };
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                // While the store is away, new files do not shorten the wait.
                () = self.spool.shared.wake.notified(), if failures == 0 => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Sends what waits now, once.
    pub async fn send_waiting(&self) -> Result<SendReport, FileError> {
        self.round(&mut None).await
    }

    fn wait_after(&self, failures: u32) -> Duration {
        let random = self.clock.now().as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.backoff.wait(failures, self.backoff.bound(failures), false, random)
    }

    async fn round(&self, lock: &mut Option<File>) -> Result<SendReport, FileError> {
        let mut report = SendReport::default();
        if lock.is_none() {
            *lock = self.spool.blocking("locking the spool", |spool| spool.folder.lock_sender()).await?;
        }
        if lock.is_none() {
            report.is_busy = true;
            return Ok(report);
        }
        let list = |spool: &SharedSpool| {
            let entries = spool.folder.entries()?;
            if entries.is_empty() {
                spool.folder.remove_leftovers(spool.clock.wall())?;
            }
            Ok(entries)
        };
        let entries = self.spool.blocking("listing the spool", list).await?;
        let mut suspects: Vec<QueueEntry> = Vec::new();
        for entry in entries {
            match self.send(&entry).await? {
                Outcome::Sent => {
                    report.sent += 1;
                    // The store takes files, so those that failed before this one have a problem of their own.
                    for suspect in suspects.drain(..) {
                        report.dead += u64::from(self.strike(suspect).await?);
                    }
                }
                Outcome::Gone => {}
                Outcome::Dead => report.dead += 1,
                Outcome::Failed => {
                    report.failed += 1;
                    suspects.push(entry);
                    if suspects.len() >= FAILURES_PER_ROUND {
                        break;
                    }
                }
                Outcome::Refused(wait) => {
                    report.retry_after = Some(wait.unwrap_or(SEND_BACKOFF));
                    break;
                }
            }
        }
        self.spool.stats().await?;
        Ok(report)
    }

    async fn send(&self, entry: &QueueEntry) -> Result<Outcome, FileError> {
        let row = match self.prepare(entry).await? {
            Prepared::Ready(row) => row,
            Prepared::Gone => return Ok(Outcome::Gone),
            Prepared::Dead(row, reason, problem) => {
                lines::given_up(&row, reason, &problem);
                return Ok(Outcome::Dead);
            }
        };
        let begin = self.clock.now();
        let mut body = FileBody::from_path(self.spool.shared.folder.data(&row.id));
        let Err(error) = self.store.upload(&row.key, &row.content_type, &mut body).await else {
            self.finish(entry, row, begin).await?;
            return Ok(Outcome::Sent);
        };
        if error.fault().verdict() == Verdict::Rejected {
            return Ok(Outcome::Refused(error.fault().retry_after()));
        }
        // The bytes could not be read: the file was deleted meanwhile, or the disk fails.
        let is_for_good = !error.is_store_away() && *error.kind() != FileErrorKind::Source;
        self.failed(entry, row, begin, &error, is_for_good).await
    }

    /// Reads the row and checks that the bytes are those that were accepted.
    async fn prepare(&self, entry: &QueueEntry) -> Result<Prepared, FileError> {
        let (spool, entry) = (self.spool.clone(), entry.clone());
        let prepare = move |shared: &SharedSpool| {
            let row = match shared.folder.read_row(&entry) {
                Ok(row) => row,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Prepared::Gone),
                Err(error) => {
                    let row = spool.bury_unreadable(&entry, &error.to_string())?;
                    return Ok(Prepared::Dead(row, REASON_CORRUPT, error.to_string()));
                }
            };
            let problem = match checksum_of(&shared.folder.data(&row.id)) {
                Ok(checksum) if checksum == row.checksum => return Ok(Prepared::Ready(row)),
                Ok(_) => "the bytes are not those that were accepted".to_owned(),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) if !shared.folder.has_row(&entry) => return Ok(Prepared::Gone),
                // A crash came between the two steps of giving it up.
                Err(_) if shared.folder.dead(&row.id).exists() => row.last_error().to_owned(),
                Err(_) => "the bytes are gone".to_owned(),
            };
            let is_buried = shared.folder.dead(&row.id).exists();
            let reason = if is_buried { REASON_REFUSED } else { REASON_CORRUPT };
            spool.bury(&entry, &row, reason, &problem)?;
            Ok(Prepared::Dead(row, reason, problem))
        };
        self.spool.blocking_for(CHECK_TIMEOUT, "reading a row of the spool", prepare).await
    }

    /// Removes a file that was sent. If it was deleted meanwhile, it is deleted in the store too.
    async fn finish(&self, entry: &QueueEntry, row: Row, begin: Tick) -> Result<(), FileError> {
        let (entry, id) = (entry.clone(), row.id.clone());
        let remove = move |spool: &SharedSpool| {
            let was_there = spool.folder.remove_row(&entry)?;
            super::durable::remove_file(&spool.folder.data(&id))?;
            Ok(was_there)
        };
        if !self.spool.blocking("removing a file that was sent", remove).await? {
            self.store.delete(&row.key).await?;
        }
        self.spool.shared.metrics.sent();
        lines::sent(&row, self.clock.now().since(begin));
        Ok(())
    }

    async fn failed(
        &self,
        entry: &QueueEntry,
        mut row: Row,
        begin: Tick,
        error: &FileError,
        is_for_good: bool,
    ) -> Result<Outcome, FileError> {
        let took = self.clock.now().since(begin);
        row.add(RowAttempt { at: self.spool.now(), took, error: error.to_string() });
        self.spool.shared.metrics.failed();
        let (spool, entry, text) = (self.spool.clone(), entry.clone(), error.to_string());
        let record = move |shared: &SharedSpool| {
            if !shared.folder.has_row(&entry) {
                return Ok(None);
            }
            shared.folder.write_row(&entry, &row)?;
            if is_for_good {
                spool.bury(&entry, &row, REASON_REFUSED, &text)?;
            }
            Ok(Some(row))
        };
        let Some(row) = self.spool.blocking("recording an attempt", record).await? else {
            return Ok(Outcome::Gone);
        };
        if is_for_good {
            lines::given_up(&row, REASON_REFUSED, error);
            return Ok(Outcome::Dead);
        }
        lines::failed(&row, took, error);
        Ok(Outcome::Failed)
    }

    /// Counts a failure that is the file's own, and gives the file up if there were too many. Returns true if it did.
    async fn strike(&self, entry: QueueEntry) -> Result<bool, FileError> {
        let spool = self.spool.clone();
        let strike = move |shared: &SharedSpool| {
            let Ok(mut row) = shared.folder.read_row(&entry) else { return Ok(None) };
            row.strikes += 1;
            shared.folder.write_row(&entry, &row)?;
            if row.strikes < STRIKES_MAX {
                return Ok(None);
            }
            spool.bury(&entry, &row, REASON_ATTEMPTS, row.last_error())?;
            Ok(Some(row))
        };
        let dead = self.spool.blocking("recording an attempt", strike).await?;
        if let Some(row) = &dead {
            lines::given_up(row, REASON_ATTEMPTS, &row.last_error());
        }
        Ok(dead.is_some())
    }
}

enum Prepared {
    Ready(Row),
    Gone,
    /// The file was given up, for this reason and with this message.
    Dead(Row, &'static str, String),
}

fn checksum_of(path: &std::path::Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; crate::READ_BYTES];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

impl fmt::Debug for SpoolSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpoolSender")
            .field("spool", &self.spool)
            .field("store", &self.store.name())
            .finish_non_exhaustive()
    }
}
