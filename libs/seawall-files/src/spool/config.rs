//! The settings of a spool.

use std::path::PathBuf;
use std::sync::Arc;

use seawall::{Clock, ConfigError};
use tokio::sync::Notify;

use super::folder::Folder;
use super::metrics::SpoolMetrics;
use super::room::Room;
use super::{SharedSpool, Spool};

/// The maximum number of bytes in a spool: an hour of 2.9 MB/s. More than that is a disk that fills up unnoticed.
pub const SPOOL_BYTES_MAX: u64 = 10 * 1_024 * 1_024 * 1_024;

/// Chooses the settings of a [`Spool`].
#[must_use = "a spool is made by `build`"]
#[derive(Debug)]
pub struct SpoolBuilder {
    folder: PathBuf,
    name: String,
    bytes_max: u64,
    clock: Clock,
}

impl SpoolBuilder {
    pub(super) fn new(folder: PathBuf) -> Self {
        SpoolBuilder { folder, name: "files".to_owned(), bytes_max: SPOOL_BYTES_MAX, clock: Clock::system() }
    }

    /// Sets the name in metrics and in dead letters; `files` unless told.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the maximum number of bytes; [`SPOOL_BYTES_MAX`] unless told. Files that were given up count too.
    pub fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Creates the folder if it is missing, and removes what a crash left half written.
    pub fn build(self) -> Result<Spool, ConfigError> {
        let mut problems = Vec::new();
        if self.bytes_max == 0 {
            problems.push(("bytes_max", "0 bytes take no file; leave the spool out instead".to_owned()));
        }
        let folder = Folder::create(self.folder.clone()).and_then(|folder| {
            folder.remove_leftovers(self.clock.wall())?;
            Ok(folder)
        });
        let folder = folder.map_err(|error| {
            let text = format!("{} can't be used ({error}); give it to this user", self.folder.display());
            problems.push(("folder", text));
        });
        match folder {
            Ok(folder) if problems.is_empty() => Ok(Spool {
                shared: Arc::new(SharedSpool {
                    folder,
                    room: Room::new(self.bytes_max),
                    clock: self.clock,
                    wake: Notify::new(),
                    metrics: SpoolMetrics::new(&self.name),
                }),
            }),
            _ => Err(ConfigError::new(format!("the spool in `{}`", self.folder.display()), problems)),
        }
    }
}
