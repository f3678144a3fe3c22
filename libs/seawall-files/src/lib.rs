//! Files on S3-compatible stores, Azure Blob Storage or the disk, with a failover store and a spool.
#![doc = ""]
#![doc = include_str!("../docs/files.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod error;
mod fault;
mod log;
mod name;
pub mod spool;
mod storage;
mod store;
mod stream;
#[cfg(feature = "metrics")]
pub mod telemetry;

pub use body::{FileBody, READ_BYTES};
pub use error::{FileError, FileErrorKind, FileRefusal};
pub use fault::{ObjectStoreErrors, fault_of};
pub use name::{FileId, NAME_BYTES_MAX, content_type};
pub use spool::{Spool, SpoolSender};
pub use storage::{
    BYTES_MAX, DeleteOutcome, FileStorage, FileStorageBuilder, LargeFiles, PREFIX, StoredBy, StoredFile,
};
#[cfg(feature = "azure")]
pub use store::AzureAccount;
#[cfg(feature = "s3")]
pub use store::S3Account;
pub use store::{
    ATTEMPT_TIMEOUT, BREAKER_CALLS, BREAKER_COOLDOWN, BREAKER_FAILURE_PERCENT, CALL_ATTEMPTS, FileContent,
    FileFuture, FileMetadata, FileStore, IDLE_TIMEOUT, ObjectFiles, ObjectFilesBuilder, PARALLEL_PARTS,
    PART_BYTES, PART_BYTES_MIN, RESUMES_MAX, RETRY_WAIT,
};
#[cfg(feature = "cloud")]
pub use store::{CONNECT_TIMEOUT, StoreConnector};
