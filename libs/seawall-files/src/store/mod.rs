//! Where files are kept: one trait, and one implementation over the crate `object_store` for S3, Azure, disk and memory.

#[cfg(feature = "azure")]
mod azure;
mod config;
#[cfg(feature = "cloud")]
mod dial;
mod download;
#[cfg(feature = "cloud")]
mod http;
mod multipart;
mod object;
#[cfg(feature = "s3")]
mod s3;

#[cfg(feature = "azure")]
pub use azure::AzureAccount;
pub use config::{
    ATTEMPT_TIMEOUT, BREAKER_CALLS, BREAKER_COOLDOWN, BREAKER_FAILURE_PERCENT, CALL_ATTEMPTS, IDLE_TIMEOUT,
    ObjectFilesBuilder, PARALLEL_PARTS, PART_BYTES, PART_BYTES_MIN, RESUMES_MAX, RETRY_WAIT,
};
#[cfg(feature = "cloud")]
pub use http::{CONNECT_TIMEOUT, StoreConnector};
pub use object::ObjectFiles;
#[cfg(feature = "s3")]
pub use s3::S3Account;

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use crate::body::FileBody;
use crate::error::FileError;

/// The future of a [`FileStore`].
pub type FileFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, FileError>> + Send + 'a>>;

/// A place where files are kept under keys such as `uploads/7f8a…_report.pdf`.
///
/// An upload takes effect as a whole or not at all: nobody ever sees half a file. The futures may be dropped at any await.
pub trait FileStore: Send + Sync + 'static {
    /// The name of the store in log lines and metrics.
    fn name(&self) -> &str;

    /// Stores the bytes under the key, and returns how many there were. A file that is there already is replaced.
    fn upload<'a>(
        &'a self,
        key: &'a str,
        content_type: &'a str,
        body: &'a mut FileBody,
    ) -> FileFuture<'a, u64>;

    /// Begins to read the file, or the part of it in this range of bytes.
    fn download<'a>(&'a self, key: &'a str, range: Option<Range<u64>>) -> FileFuture<'a, FileContent>;

    /// Deletes the file. A file that is not there counts as deleted.
    fn delete<'a>(&'a self, key: &'a str) -> FileFuture<'a, ()>;

    /// What is known about the file; `None` if there is none.
    fn metadata<'a>(&'a self, key: &'a str) -> FileFuture<'a, Option<FileMetadata>>;
}

/// A file that is being read.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileContent {
    /// What is known about the file.
    pub metadata: FileMetadata,
    /// The bytes, as they come.
    pub body: FileBody,
}

impl FileContent {
    /// Creates the content of a file, for stores of your own.
    #[must_use]
    pub fn new(metadata: FileMetadata, body: FileBody) -> Self {
        FileContent { metadata, body }
    }
}

/// What a store knows about a file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FileMetadata {
    /// The size of the whole file in bytes.
    pub bytes: u64,
    /// The type of what is in the file, where the store keeps one.
    pub content_type: Option<String>,
    /// The mark of this version of the file, where the store has one.
    pub etag: Option<String>,
}

impl FileMetadata {
    /// Creates the metadata of a file of this size, for stores of your own.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        FileMetadata { bytes, content_type: None, etag: None }
    }
}
