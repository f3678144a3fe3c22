//! The gateway that an application uses: rules, ids, failover, spool.

mod config;
mod delete;
mod download;
mod report;
mod upload;

pub use config::{BYTES_MAX, FileStorageBuilder, LargeFiles, PREFIX};
pub use delete::DeleteOutcome;
#[cfg(feature = "metrics")]
pub(crate) use report::METRICS;
pub use upload::{StoredBy, StoredFile};

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::error::{FileError, FileRefusal};
use crate::name::{FileId, check_name, extension_of};
use crate::spool::{Spool, SpoolSender};
use crate::store::FileStore;
use report::Reporter;

/// Files behind one handle: checked, stored under an id, in a second store or in a spool when the first one is away.
///
/// A handle: clones share everything.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_files::{FileStorage, ObjectFiles};
/// let storage = FileStorage::builder("S3-Adapter", ObjectFiles::builder("reports").memory()?)
///     .extensions(["pdf", "csv"])
///     .bytes_max(10 * 1_024 * 1_024)
///     .build()?;
///
/// let stored = storage.upload_file("q3.pdf", Some(12), "%PDF-1.7 …").await?;
/// let content = storage.download_file(&stored.id).await?;
/// assert_eq!(content.body.collect(1_000).await?, "%PDF-1.7 …");
/// storage.delete_file(&stored.id).await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FileStorage {
    shared: Arc<SharedStorage>,
}

struct SharedStorage {
    primary: Arc<dyn FileStore>,
    secondary: Option<Arc<dyn FileStore>>,
    spool: Option<Spool>,
    prefix: String,
    bytes_max: u64,
    extensions: BTreeSet<String>,
    large_files: LargeFiles,
    buffer_bytes: usize,
    report: Reporter,
}

impl FileStorage {
    /// Chooses settings. The name stands in log lines and metrics, such as `S3-Adapter`.
    pub fn builder(name: &str, primary: impl FileStore) -> FileStorageBuilder {
        FileStorageBuilder::new(name, Arc::new(primary))
    }

    /// The sender of the spool, which has to run somewhere; `None` without a spool.
    #[must_use]
    pub fn sender(&self) -> Option<SpoolSender> {
        let spool = self.shared.spool.clone()?;
        Some(SpoolSender::new(spool, Arc::clone(&self.shared.primary)))
    }

    /// The spool, if there is one.
    #[must_use]
    pub fn spool(&self) -> Option<&Spool> {
        self.shared.spool.as_ref()
    }

    /// The key under which the stores keep a file: `{prefix}/{id}`.
    #[must_use]
    pub fn key(&self, id: &FileId) -> String {
        self.shared.key(id)
    }
}

impl SharedStorage {
    fn key(&self, id: &FileId) -> String {
        format!("{}/{id}", self.prefix)
    }

    /// Checks what is known before the first byte.
    fn check(&self, name: &str, declared: Option<u64>) -> Result<(), FileError> {
        let check = || {
            check_name(name)?;
            match declared {
                Some(0) => return Err(FileRefusal::Empty),
                Some(bytes) if bytes > self.bytes_max => {
                    return Err(FileRefusal::TooLarge { bytes_max: self.bytes_max });
                }
                _ => {}
            }
            let extension = extension_of(name);
            if self.extensions.contains(&extension) {
                return Ok(());
            }
            Err(FileRefusal::ExtensionNotAllowed(extension))
        };
        check().map_err(|refusal| FileError::refused("uploading a file", refusal))
    }

    /// The stores, in the order in which they are asked.
    fn stores(&self) -> impl Iterator<Item = &Arc<dyn FileStore>> {
        std::iter::once(&self.primary).chain(&self.secondary)
    }
}

impl fmt::Debug for FileStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStorage").field("prefix", &self.shared.prefix).finish_non_exhaustive()
    }
}
