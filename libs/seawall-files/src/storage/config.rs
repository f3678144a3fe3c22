//! The settings of a storage.

use std::sync::Arc;

use seawall::{Clock, ConfigError};

use super::report::Reporter;
use super::{FileStorage, SharedStorage};
use crate::spool::Spool;
use crate::store::{FileStore, PART_BYTES};

/// The maximum number of bytes of a file. More is rarely a document, and often a mistake.
pub const BYTES_MAX: u64 = 100 * 1_024 * 1_024;

/// The first part of the keys.
pub const PREFIX: &str = "uploads";

/// What is done with files that are too large to be held in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LargeFiles {
    /// They are written into the folder of the spool first, if there is a spool. Then a store that fails in the middle costs
    /// nothing: the file goes to the second store or stays in the spool. The upload begins when the last byte has come.
    #[default]
    Stage,
    /// They go to the store as they come. A store that fails in the middle ends the upload with an error, and the caller has
    /// to begin anew: nothing was acknowledged.
    Stream,
}

/// Chooses the settings of a [`FileStorage`].
#[must_use = "a storage is made by `build`"]
pub struct FileStorageBuilder {
    name: String,
    primary: Arc<dyn FileStore>,
    secondary: Option<Arc<dyn FileStore>>,
    spool: Option<Spool>,
    prefix: String,
    bytes_max: u64,
    extensions: Vec<String>,
    large_files: LargeFiles,
    buffer_bytes: usize,
}

impl FileStorageBuilder {
    pub(super) fn new(name: &str, primary: Arc<dyn FileStore>) -> Self {
        FileStorageBuilder {
            name: name.to_owned(),
            primary,
            secondary: None,
            spool: None,
            prefix: PREFIX.to_owned(),
            bytes_max: BYTES_MAX,
            extensions: Vec::new(),
            large_files: LargeFiles::default(),
            buffer_bytes: PART_BYTES,
        }
    }

    /// Adds a second store: files go there while the first one is away, and are looked for there when the first one does not
    /// have them.
    pub fn secondary(mut self, store: impl FileStore) -> Self {
        self.secondary = Some(Arc::new(store));
        self
    }

    /// Adds a spool, which takes files when no store does. Its [sender](FileStorage::sender) has to run.
    pub fn spool(mut self, spool: Spool) -> Self {
        self.spool = Some(spool);
        self
    }

    /// Sets the first part of the keys; [`PREFIX`] unless told.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    /// Sets the maximum number of bytes of a file; [`BYTES_MAX`] unless told.
    pub fn bytes_max(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Sets the extensions that are allowed, in small letters and without a dot. There is no default: a storage that takes
    /// everything serves everything.
    pub fn extensions(mut self, extensions: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.extensions = extensions.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what is done with large files; [`LargeFiles::Stage`] unless told.
    pub fn large_files(mut self, large_files: LargeFiles) -> Self {
        self.large_files = large_files;
        self
    }

    /// Sets up to which size a file is held in memory; [`PART_BYTES`] unless told. Such a file is retried, goes to the second
    /// store and into the spool whatever it was read from.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Makes the storage, or says everything that is wrong at once.
    pub fn build(self) -> Result<FileStorage, ConfigError> {
        let mut problems = Vec::new();
        if self.name.trim().is_empty() {
            problems.push(("name", "a storage without a name can't be found in a log".to_owned()));
        }
        if self.bytes_max == 0 {
            problems.push(("bytes_max", "0 bytes refuse every file".to_owned()));
        }
        if self.buffer_bytes == 0 {
            problems.push(("buffer_bytes", "0 bytes hold no file; 8 MiB is usual".to_owned()));
        }
        if self.extensions.is_empty() {
            let text = "no extension is allowed; say which ones are, such as `.extensions([\"pdf\"])`";
            problems.push(("extensions", text.to_owned()));
        }
        for extension in &self.extensions {
            if extension.is_empty()
                || extension.contains(['.', '/'])
                || extension.to_lowercase() != *extension
            {
                let text = format!("`{extension}` is not an extension in small letters without a dot");
                problems.push(("extensions", text));
            }
        }
        let is_part =
            |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(char::is_control);
        if !self.prefix.split('/').all(is_part) {
            let text =
                format!("`{}` is no prefix of a key; write it without a slash at its ends", self.prefix);
            problems.push(("prefix", text));
        }
        if !problems.is_empty() {
            return Err(ConfigError::new(format!("the file storage `{}`", self.name), problems));
        }
        Ok(FileStorage {
            shared: Arc::new(SharedStorage {
                report: Reporter::new(&self.name, Clock::system()),
                primary: self.primary,
                secondary: self.secondary,
                spool: self.spool,
                prefix: self.prefix,
                bytes_max: self.bytes_max,
                extensions: self.extensions.into_iter().collect(),
                large_files: self.large_files,
                buffer_bytes: self.buffer_bytes,
            }),
        })
    }
}

impl std::fmt::Debug for FileStorageBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStorageBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
