//! Uploads: checked, then to the first store, the second one, or the spool.

use bytes::Bytes;
use seawall::failover::Side;

use super::config::LargeFiles;
use super::report::{Operation, Span};
use super::{FileStorage, SharedStorage};
use crate::body::FileBody;
use crate::error::{FileError, FileErrorKind};
use crate::name::{FileId, content_type};
use crate::spool::{Row, Spool, StagedFile, WriteFailure};

/// The bytes that are written to the folder of the spool at a time.
const STAGE_BYTES: usize = 1_024 * 1_024;

const ACTION: &str = "uploading a file";

/// A file that was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StoredFile {
    /// The id, by which the file is downloaded and deleted.
    pub id: FileId,
    /// The number of bytes.
    pub bytes: u64,
    /// Who has the file now.
    pub by: StoredBy,
}

/// Who took a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoredBy {
    /// A store has the file: the primary or the secondary.
    Store(Side),
    /// The spool has the file, and its sender sends it later.
    Spool,
}

/// A file that is ready to be sent.
struct PreparedFile {
    body: FileBody,
    /// The bytes on disk, if they are there. Dropped with the file.
    staged: Option<StagedFile>,
    /// The bytes in memory, if they are there.
    pieces: Option<Vec<Bytes>>,
    size: Option<u64>,
}

impl FileStorage {
    /// Stores a file and returns its id.
    ///
    /// `declared` is the size that the sender announced, such as a `Content-Length`; another number of bytes is refused. Bytes,
    /// texts, files and readers turn into a [`FileBody`].
    ///
    /// When this returns `Ok`, the file is in a store or in the spool, and a crash does not lose it.
    pub async fn upload_file(
        &self,
        name: &str,
        declared: Option<u64>,
        body: impl Into<FileBody>,
    ) -> Result<StoredFile, FileError> {
        let shared = &*self.shared;
        let span = shared.report.begin(Operation::Upload, name, declared);
        let body = body.into().with_rules(declared, shared.bytes_max);
        let result = shared.upload(name, declared, body, &span).await;
        match &result {
            Ok(stored) => shared.report.uploaded(&span, stored),
            Err(error) => shared.report.upload_failed(&span, error),
        }
        result
    }
}

impl SharedStorage {
    async fn upload(
        &self,
        name: &str,
        declared: Option<u64>,
        mut body: FileBody,
        span: &Span<'_>,
    ) -> Result<StoredFile, FileError> {
        self.check(name, declared)?;
        let id = FileId::new(name);
        let (pieces, is_all) = match body.take(self.buffer_bytes).await {
            Ok(taken) => taken,
            Err(error) => return Err(source_error(&body, error)),
        };
        let mut file = if is_all {
            PreparedFile::buffered(pieces)
        } else {
            body.prepend(pieces);
            match (&self.spool, self.large_files) {
                (Some(spool), LargeFiles::Stage) => stage(spool, body).await?,
                _ => PreparedFile::streamed(body),
            }
        };
        let error = match self.upload_to_stores(&id, &mut file, span).await {
            Ok((bytes, side)) => return Ok(StoredFile { id, bytes, by: StoredBy::Store(side) }),
            Err(error) => error,
        };
        let Some(spool) = self.spool.as_ref().filter(|_| error.is_store_away()) else { return Err(error) };
        if !file.is_complete() {
            // Part of a stream is gone. Nothing was acknowledged, and the caller still has its source.
            return Err(error);
        }
        self.report.spooling(span, &error);
        match self.spool_file(spool, &id, file, &error).await {
            Ok(bytes) => {
                self.report.spooled(span, &id);
                Ok(StoredFile { id, bytes, by: StoredBy::Spool })
            }
            Err(disk) => Err(self.report.lost(span, &error, &disk)),
        }
    }

    /// Tries the stores one after the other, as long as they are away and the bytes can be had again.
    async fn upload_to_stores(
        &self,
        id: &FileId,
        file: &mut PreparedFile,
        span: &Span<'_>,
    ) -> Result<(u64, Side), FileError> {
        let (key, content_type) = (self.key(id), content_type(id.name()));
        let first = match self.primary.upload(&key, content_type, &mut file.body).await {
            Ok(bytes) => return Ok((bytes, Side::PRIMARY)),
            Err(error) => of_source(&file.body, error),
        };
        let Some(secondary) = self.secondary.as_ref().filter(|_| first.is_store_away()) else {
            return Err(first);
        };
        if !file.body.rewind() {
            return Err(first);
        }
        self.report.failing_over(span, &first);
        match secondary.upload(&key, content_type, &mut file.body).await {
            Ok(bytes) => Ok((bytes, Side::SECONDARY)),
            Err(error) => {
                let second = of_source(&file.body, error);
                // What the second one refuses for good may be its own problem: the file then waits for the first one.
                Err(if second.is_store_away() || matches!(second.kind(), FileErrorKind::Permission) {
                    first
                } else {
                    second
                })
            }
        }
    }

    /// Puts the file into the spool, for good. Returns its size.
    async fn spool_file(
        &self,
        spool: &Spool,
        id: &FileId,
        file: PreparedFile,
        trigger: &FileError,
    ) -> Result<u64, FileError> {
        let staged = match (file.staged, file.pieces) {
            (Some(staged), _) => staged,
            (None, pieces) => {
                let staged = spool.stage().await?;
                staged.write(pieces.unwrap_or_default()).await.map_err(|failure| failure.error)?
            }
        };
        let bytes = staged.bytes();
        let row = Row {
            id: id.to_string(),
            key: self.key(id),
            content_type: content_type(id.name()).to_owned(),
            bytes,
            checksum: staged.checksum(),
            at: spool.now(),
            trigger: trigger.to_string(),
            trace: self.report.trace_id(),
            attempts: Vec::new(),
            attempts_made: 0,
            strikes: 0,
        };
        spool.accept(staged, row).await?;
        Ok(bytes)
    }
}

impl PreparedFile {
    fn buffered(pieces: Vec<Bytes>) -> Self {
        let size = crate::spool::bytes_of(&pieces);
        let body = FileBody::from_pieces(pieces.clone());
        PreparedFile { body, staged: None, pieces: Some(pieces), size: Some(size) }
    }

    fn streamed(body: FileBody) -> Self {
        PreparedFile { body, staged: None, pieces: None, size: None }
    }

    /// Whether all bytes of the file are at hand.
    fn is_complete(&self) -> bool {
        self.size.is_some()
    }
}

/// Writes a large file into the folder of the spool. If there is no room, the file goes to the store as it comes.
async fn stage(spool: &Spool, mut body: FileBody) -> Result<PreparedFile, FileError> {
    let Ok(mut staged) = spool.stage().await else { return Ok(PreparedFile::streamed(body)) };
    let mut is_all = false;
    while !is_all {
        let pieces;
        (pieces, is_all) = match body.take(STAGE_BYTES).await {
            Ok(taken) => taken,
            Err(error) => return Err(source_error(&body, error)),
        };
        staged = match staged.write(pieces).await {
            Ok(staged) => staged,
            Err(WriteFailure { rest: Some((staged, pieces)), .. }) => {
                body.prepend(pieces);
                let body = body.preceded_by(staged.body(), staged.bytes());
                return Ok(PreparedFile { body, staged: Some(staged), pieces: None, size: None });
            }
            Err(WriteFailure { rest: None, error }) => return Err(error),
        };
    }
    let (body, size) = (staged.body(), staged.bytes());
    Ok(PreparedFile { body, staged: Some(staged), pieces: None, size: Some(size) })
}

/// The error of a body: a rule that it breaks, or a source that failed.
fn source_error(body: &FileBody, error: std::io::Error) -> FileError {
    match body.refusal() {
        Some(refusal) => FileError::refused(ACTION, refusal.clone()),
        None => {
            let fault = seawall::Fault::of_io(error.kind()).permanent();
            FileError::new(FileErrorKind::Source, ACTION, fault).with_cause(error)
        }
    }
}

/// The error of an upload, or that of its body if the body is why it failed.
fn of_source(body: &FileBody, error: FileError) -> FileError {
    match body.refusal() {
        Some(refusal) => FileError::refused(ACTION, refusal.clone()),
        // A store of somebody else may take it for its own failure.
        None if body.is_failed() && *error.kind() != FileErrorKind::Source => {
            FileError::new(FileErrorKind::Source, ACTION, error.fault().permanent()).with_cause(error)
        }
        None => error,
    }
}
