//! The folder of a spool.
//!
//! ```text
//! data/{file id}                       the bytes of files that wait
//! queue/{time}-{number}-{file id}.json one row per file that waits, in the order in which they are sent
//! dead/{file id}                       the bytes of files that were given up
//! letters/{hash}.json                  one dead letter per file that was given up
//! staging/                             what is being written, and of no value after a crash
//! sender.lock                          locked by the one process that sends
//! ```
//!
//! A file is accepted when its row is in `queue`: its bytes were made durable before. It leaves when its row is gone.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use seawall_dist::Millis;

use super::SpoolStats;
use super::durable::{move_file, remove_file, sync_folder, write_file};
use super::row::Row;
use super::staged::StagedFile;
use crate::name::{FileId, random_uuid};

/// What a crash left half written is removed when nobody has touched it for this long.
const LEFTOVER_AGE: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// Distinguishes rows of the same millisecond.
    number: AtomicU32,
}

/// A row of the queue, by the name of its file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct QueueEntry {
    pub(super) name: String,
}

impl QueueEntry {
    /// The id of the file that the row is about.
    pub(super) fn file_id(&self) -> &str {
        self.name.splitn(3, '-').nth(2).and_then(|rest| rest.strip_suffix(".json")).unwrap_or_default()
    }

    /// When the file was accepted.
    fn at(&self) -> Option<Millis> {
        self.name.split('-').next()?.parse().ok().map(Millis)
    }
}

impl Folder {
    pub(super) fn create(root: PathBuf) -> io::Result<Self> {
        let folder = Folder { root, number: AtomicU32::new(0) };
        for part in ["data", "queue", "dead", "letters", "staging"] {
            fs::create_dir_all(folder.root.join(part))?;
        }
        sync_folder(&folder.root)?;
        Ok(folder)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    pub(super) fn letters(&self) -> PathBuf {
        self.root.join("letters")
    }

    pub(super) fn data(&self, id: &str) -> PathBuf {
        self.root.join("data").join(id)
    }

    pub(super) fn dead(&self, id: &str) -> PathBuf {
        self.root.join("dead").join(id)
    }

    fn queue(&self) -> PathBuf {
        self.root.join("queue")
    }

    fn row_path(&self, entry: &QueueEntry) -> PathBuf {
        self.queue().join(&entry.name)
    }

    /// Takes the lock of the sender; `None` if another one has it. It is given back when the file is closed, also by a crash.
    pub(super) fn lock_sender(&self) -> io::Result<Option<File>> {
        let file =
            File::options().create(true).write(true).truncate(false).open(self.root.join("sender.lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Accepts a file. When this returns, a crash does not lose it.
    pub(super) fn accept(&self, staged: StagedFile, row: &Row) -> io::Result<()> {
        let data = self.data(&row.id);
        staged.into_durable(&data)?;
        sync_folder(&self.root.join("data"))?;
        let queued = self.enqueue(row);
        if queued.is_err() {
            let _ = fs::remove_file(&data);
        }
        queued
    }

    /// Adds a row at the end of the queue.
    pub(super) fn enqueue(&self, row: &Row) -> io::Result<()> {
        let number = self.number.fetch_add(1, Ordering::Relaxed) % 1_000_000;
        let entry = QueueEntry { name: format!("{:014}-{number:06}-{}.json", row.at.0, row.id) };
        self.write_row(&entry, row)
    }

    pub(super) fn write_row(&self, entry: &QueueEntry, row: &Row) -> io::Result<()> {
        write_file(&self.staging().join(random_uuid()), &self.row_path(entry), &row.to_json())
    }

    pub(super) fn read_row(&self, entry: &QueueEntry) -> io::Result<Row> {
        Row::from_json(&fs::read(self.row_path(entry))?)
    }

    pub(super) fn has_row(&self, entry: &QueueEntry) -> bool {
        self.row_path(entry).exists()
    }

    /// Removes a row for good. Returns false if it was gone already.
    pub(super) fn remove_row(&self, entry: &QueueEntry) -> io::Result<bool> {
        remove_file(&self.row_path(entry))
    }

    /// The rows of the queue, the first one first.
    pub(super) fn entries(&self) -> io::Result<Vec<QueueEntry>> {
        let mut entries = Vec::new();
        for found in fs::read_dir(self.queue())? {
            let Ok(name) = found?.file_name().into_string() else { continue };
            entries.extend(name.ends_with(".json").then_some(QueueEntry { name }));
        }
        entries.sort_unstable();
        Ok(entries)
    }

    /// Opens a file that waits or was given up.
    pub(super) fn open(&self, id: &FileId) -> io::Result<Option<(File, u64)>> {
        for path in [self.data(id.as_str()), self.dead(id.as_str())] {
            match File::open(path) {
                Ok(file) => {
                    let bytes = file.metadata()?.len();
                    return Ok(Some((file, bytes)));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Forgets a file. Its row goes first, so that it is not sent any more.
    pub(super) fn forget(&self, id: &FileId) -> io::Result<bool> {
        let is_waiting = self.data(id.as_str()).exists();
        if is_waiting {
            for entry in self.entries()?.iter().filter(|entry| entry.file_id() == id.as_str()) {
                self.remove_row(entry)?;
            }
        }
        let removed = remove_file(&self.data(id.as_str()))?;
        Ok(remove_file(&self.dead(id.as_str()))? || removed)
    }

    /// Moves the bytes of a file that was given up.
    pub(super) fn bury(&self, id: &str) -> io::Result<()> {
        move_file(&self.data(id), &self.dead(id))
    }

    /// Brings the bytes of a file that was given up back.
    pub(super) fn revive(&self, id: &str) -> io::Result<()> {
        move_file(&self.dead(id), &self.data(id))
    }

    /// The bytes of all files, those that were given up included.
    pub(super) fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for part in ["data", "dead"] {
            for found in fs::read_dir(self.root.join(part))? {
                // A file that is sent meanwhile is gone.
                bytes += found?.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(bytes)
    }

    pub(super) fn stats(&self) -> io::Result<SpoolStats> {
        let entries = self.entries()?;
        let oldest = entries.first().and_then(QueueEntry::at);
        Ok(SpoolStats { files: entries.len() as u64, bytes: self.bytes()?, oldest })
    }

    /// Removes what crashes left half written: nobody was told that it was accepted.
    pub(super) fn remove_leftovers(&self, now: SystemTime) -> io::Result<()> {
        let is_old = |path: &Path| {
            let touched = fs::metadata(path).and_then(|metadata| metadata.modified());
            touched.is_ok_and(|touched| now.duration_since(touched).unwrap_or_default() > LEFTOVER_AGE)
        };
        for found in fs::read_dir(self.staging())? {
            let path = found?.path();
            let is_abandoned = || File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
            if is_old(&path) && is_abandoned() {
                let _ = fs::remove_file(path);
            }
        }
        let entries = self.entries()?;
        for found in fs::read_dir(self.root.join("data"))? {
            let found = found?;
            let has_row = entries.iter().any(|entry| found.file_name().to_str() == Some(entry.file_id()));
            if !has_row && is_old(&found.path()) {
                let _ = fs::remove_file(found.path());
            }
        }
        Ok(())
    }
}
