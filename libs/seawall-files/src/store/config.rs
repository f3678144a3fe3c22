//! The settings of a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use seawall::{Backoff, Breaker, ConfigError, Guard, GuardBuilder, Retry};

use super::multipart::UnfinishedUploads;
use super::object::{ObjectFiles, SharedFiles, TypeSupport};
use crate::log;

/// The size of the parts of a large file. A file up to this size goes as one request. S3 takes 10 000 parts: 80 GiB.
pub const PART_BYTES: usize = 8 * 1_024 * 1_024;

/// The smallest part that S3 takes.
pub const PART_BYTES_MIN: usize = 5 * 1_024 * 1_024;

/// The number of parts of one file that are sent at once. An upload holds one part more in memory.
pub const PARALLEL_PARTS: usize = 2;

/// How long one request may take: 8 MiB at 280 kB/s.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The attempts of one request.
pub const CALL_ATTEMPTS: u32 = 3;

/// The wait before the second attempt; the next one is twice as long.
pub const RETRY_WAIT: Duration = Duration::from_secs(1);

/// The circuit opens when this share of the last [`BREAKER_CALLS`] requests has failed.
pub const BREAKER_FAILURE_PERCENT: u8 = 50;

/// The number of requests that the circuit looks at. It decides after half of them.
pub const BREAKER_CALLS: u32 = 10;

/// How long the circuit stays open before a request is let through.
pub const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);

/// How long a download may be silent before the rest is asked for anew.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often one download is taken up again.
pub const RESUMES_MAX: u32 = 5;

/// Chooses the settings of [`ObjectFiles`]; the last call chooses the kind of store.
#[must_use = "the store is made by `s3`, `azure`, `disk`, `memory` or `object_store`"]
#[derive(Debug)]
pub struct ObjectFilesBuilder {
    name: String,
    guard: Option<Guard>,
    part_bytes: usize,
    parallel_parts: usize,
    idle_timeout: Duration,
}

impl ObjectFilesBuilder {
    pub(super) fn new(name: &str) -> Self {
        ObjectFilesBuilder {
            name: name.to_owned(),
            guard: None,
            part_bytes: PART_BYTES,
            parallel_parts: PARALLEL_PARTS,
            idle_timeout: IDLE_TIMEOUT,
        }
    }

    /// Sends requests through a guard of your own. Unless told there is one with [`ATTEMPT_TIMEOUT`], [`CALL_ATTEMPTS`] and a
    /// circuit that opens at [`BREAKER_FAILURE_PERCENT`]; [`default_guard`](Self::default_guard) begins with the same settings.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The guard that a store has unless told, for changes.
    pub fn default_guard(name: &str) -> GuardBuilder {
        let breaker = Breaker::failure_rate(BREAKER_FAILURE_PERCENT).over_calls(BREAKER_CALLS);
        let guard = Guard::builder(name)
            .attempt_timeout(ATTEMPT_TIMEOUT)
            .retry(Retry::max_attempts(CALL_ATTEMPTS).backoff(Backoff::exponential(RETRY_WAIT)))
            .breaker(breaker.minimum_calls(BREAKER_CALLS / 2).cooldown(BREAKER_COOLDOWN));
        log::watch_guard(guard)
    }

    /// Sets the size of the parts of a large file; [`PART_BYTES`] unless told, at least [`PART_BYTES_MIN`].
    pub fn part_bytes(mut self, bytes: usize) -> Self {
        self.part_bytes = bytes;
        self
    }

    /// Sets how many parts of one file are sent at once; [`PARALLEL_PARTS`] unless told.
    pub fn parallel_parts(mut self, parts: usize) -> Self {
        self.parallel_parts = parts;
        self
    }

    /// Sets how long a download may be silent; [`IDLE_TIMEOUT`] unless told.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Keeps files in a store that speaks S3.
    #[cfg(feature = "s3")]
    #[cfg_attr(docsrs, doc(cfg(feature = "s3")))]
    pub fn s3(self, account: &super::S3Account) -> Result<ObjectFiles, ConfigError> {
        self.finish(account.connect().map(Opened::with_parts), TypeSupport::Always)
    }

    /// Keeps files in Azure Blob Storage.
    #[cfg(feature = "azure")]
    #[cfg_attr(docsrs, doc(cfg(feature = "azure")))]
    pub fn azure(self, account: &super::AzureAccount) -> Result<ObjectFiles, ConfigError> {
        self.finish(account.connect().map(Opened::with_parts), TypeSupport::SingleRequests)
    }

    /// Keeps files in a folder, which is created if it is missing. A file that was stored is on the disk and not only in the
    /// memory of the operating system.
    pub fn disk(self, folder: impl Into<PathBuf>) -> Result<ObjectFiles, ConfigError> {
        let folder = folder.into();
        let open = || {
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let store = LocalFileSystem::new_with_prefix(&folder).map_err(|error| error.to_string())?;
            Ok(Opened::new(Arc::new(store.with_fsync(true))))
        };
        let opened = open().map_err(|error: String| {
            ("folder", format!("{} can't be used ({error}); give it to this user", folder.display()))
        });
        self.finish(opened, TypeSupport::Never)
    }

    /// Keeps files in memory, for tests.
    pub fn memory(self) -> Result<ObjectFiles, ConfigError> {
        self.finish(Ok(Opened::new(Arc::new(InMemory::new()))), TypeSupport::Always)
    }

    /// Keeps files in a store of your own making. Give it no retries of its own, or they multiply with those of the guard. The
    /// type of what is in a file is not told to it, and a part that fails ends its upload.
    pub fn object_store(self, store: Arc<dyn ObjectStore>) -> Result<ObjectFiles, ConfigError> {
        self.finish(Ok(Opened::new(store)), TypeSupport::Never)
    }

    fn finish(
        self,
        opened: Result<Opened, (&'static str, String)>,
        keeps_type: TypeSupport,
    ) -> Result<ObjectFiles, ConfigError> {
        let mut problems = Vec::new();
        if self.part_bytes < PART_BYTES_MIN {
            let text = format!("{} is less than the {PART_BYTES_MIN} bytes that S3 takes", self.part_bytes);
            problems.push(("part_bytes", text));
        }
        if self.parallel_parts == 0 {
            problems.push(("parallel_parts", "0 parts at once never end; say 1 or more".to_owned()));
        }
        if self.idle_timeout.is_zero() {
            problems.push(("idle_timeout", "0 s gives up every download at once; 30 s is usual".to_owned()));
        }
        if self.name.trim().is_empty() {
            problems.push(("name", "a store without a name can't be found in a log".to_owned()));
        }
        let opened = opened.map_err(|problem| problems.push(problem));
        let (Ok(opened), true) = (opened, problems.is_empty()) else {
            return Err(ConfigError::new(format!("the file store `{}`", self.name), problems));
        };
        let guard = match self.guard {
            Some(guard) => guard,
            None => Self::default_guard(&self.name).build()?,
        };
        let shared = SharedFiles {
            store: opened.store,
            parts: opened.parts,
            keeps_type,
            guard,
            part_bytes: self.part_bytes,
            parallel_parts: self.parallel_parts,
            idle_timeout: self.idle_timeout,
            unfinished: UnfinishedUploads::default(),
        };
        Ok(ObjectFiles { shared: Arc::new(shared) })
    }
}

/// A store, and its interface for single parts if it has one.
struct Opened {
    store: Arc<dyn ObjectStore>,
    parts: Option<Arc<dyn MultipartStore>>,
}

impl Opened {
    fn new(store: Arc<dyn ObjectStore>) -> Self {
        Opened { store, parts: None }
    }

    #[cfg(feature = "cloud")]
    fn with_parts(store: impl ObjectStore + MultipartStore) -> Self {
        let store = Arc::new(store);
        Opened { parts: Some(store.clone()), store }
    }
}
