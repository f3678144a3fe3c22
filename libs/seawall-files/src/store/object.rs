//! Files in a store of the crate `object_store`.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutOptions, PutPayload,
};
use seawall::{Fault, Guard};

use super::config::ObjectFilesBuilder;
use super::download::resumed_body;
use super::multipart::{UnfinishedUploads, upload_in_parts};
use super::{FileContent, FileFuture, FileMetadata, FileStore};
use crate::body::FileBody;
use crate::error::{FileError, FileErrorKind};
use crate::fault::{ObjectStoreErrors, file_error};

/// Files in an S3-compatible store, in Azure Blob Storage, on the disk or in memory.
///
/// A handle: clones share everything. Each request goes through one guard, with its time limit, its retries and its circuit. A
/// file up to one part goes as one request; a larger one goes in parts, each of which is retried from its own buffer.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_files::{FileBody, FileStore, ObjectFiles};
/// let store = ObjectFiles::builder("reports").memory()?;
/// store.upload("2026/q3.pdf", "application/pdf", &mut FileBody::from("%PDF-1.7 …")).await?;
/// assert_eq!(store.metadata("2026/q3.pdf").await?.map(|known| known.bytes), Some(12));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ObjectFiles {
    pub(super) shared: Arc<SharedFiles>,
}

pub(super) struct SharedFiles {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Where parts can be sent again one by one. A disk has no such interface.
    pub(super) parts: Option<Arc<dyn MultipartStore>>,
    /// Whether the store keeps the type of what is in a file with each request. Others know it by the extension, or not at all.
    pub(super) keeps_type: TypeSupport,
    pub(super) guard: Guard,
    pub(super) part_bytes: usize,
    pub(super) parallel_parts: usize,
    pub(super) idle_timeout: Duration,
    pub(super) unfinished: UnfinishedUploads,
}

/// Which requests may say the type of what is in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TypeSupport {
    Always,
    /// Azure knows the type of a file in parts by its extension, as its account was told.
    #[cfg_attr(not(feature = "azure"), expect(dead_code, reason = "only Azure is so"))]
    SingleRequests,
    Never,
}

impl ObjectFiles {
    /// Chooses settings, and then the kind of store. The name stands in log lines and is that of the guard.
    pub fn builder(name: &str) -> ObjectFilesBuilder {
        ObjectFilesBuilder::new(name)
    }

    /// The guard that all requests go through.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.shared.guard
    }
}

impl SharedFiles {
    /// Makes a request through the guard. It may run twice: keys belong to one file each.
    pub(super) async fn request<T, Fut>(
        &self,
        action: &'static str,
        key: &Path,
        request: impl Fn() -> Fut + Send,
    ) -> Result<T, FileError>
    where
        T: Send,
        Fut: Future<Output = object_store::Result<T>> + Send,
    {
        let call = self.guard.idempotent().operation(action).about(key.as_ref()).classify(ObjectStoreErrors);
        call.call(|_| request()).await.map_err(|error| file_error(action, error))
    }

    /// Makes a request that can't be repeated, with everything in the guard but its retries.
    pub(super) async fn single_request<T, Fut>(
        &self,
        action: &'static str,
        key: &Path,
        request: impl FnOnce() -> Fut + Send,
    ) -> Result<T, FileError>
    where
        T: Send,
        Fut: Future<Output = object_store::Result<T>> + Send,
    {
        let mut request = Some(request);
        let call = self.guard.once().single_attempt().operation(action).about(key.as_ref());
        let call = call.classify(ObjectStoreErrors).call(|_| {
            let request = request.take();
            async move {
                match request {
                    Some(request) => request().await,
                    None => Err(object_store::Error::NotSupported { source: "a second attempt".into() }),
                }
            }
        });
        call.await.map_err(|error| file_error(action, error))
    }

    async fn put(&self, key: &Path, content_type: &str, pieces: Vec<Bytes>) -> Result<u64, FileError> {
        let payload = PutPayload::from_iter(pieces);
        let bytes = payload.content_length() as u64;
        let options =
            || PutOptions { attributes: self.attributes(content_type, false), ..PutOptions::default() };
        self.request("uploading a file", key, || self.store.put_opts(key, payload.clone(), options()))
            .await?;
        Ok(bytes)
    }

    pub(super) fn attributes(&self, content_type: &str, in_parts: bool) -> Attributes {
        let is_told = match self.keeps_type {
            TypeSupport::Always => true,
            TypeSupport::SingleRequests => !in_parts,
            TypeSupport::Never => false,
        };
        Attributes::from_iter(is_told.then(|| (Attribute::ContentType, content_type.to_owned())))
    }

    pub(super) async fn get(
        &self,
        key: &Path,
        range: Option<Range<u64>>,
        etag: Option<String>,
    ) -> Result<GetResult, FileError> {
        let options = || GetOptions {
            range: range.clone().map(GetRange::Bounded),
            if_match: etag.clone(),
            ..GetOptions::default()
        };
        self.request("downloading a file", key, || self.store.get_opts(key, options())).await
    }

    pub(super) async fn head(&self, key: &Path) -> Result<Option<ObjectMeta>, FileError> {
        match self.request("looking for a file", key, || self.store.head(key)).await {
            Err(error) if error.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }
}

pub(super) fn path_of(action: &'static str, key: &str) -> Result<Path, FileError> {
    Path::parse(key)
        .map_err(|error| FileError::new(FileErrorKind::Other, action, Fault::business()).with_cause(error))
}

/// The error of an upload whose source could not be read.
pub(super) fn source_error(error: std::io::Error) -> FileError {
    FileError::new(
        FileErrorKind::Source,
        "reading the file to upload",
        Fault::of_io(error.kind()).permanent(),
    )
    .with_cause(error)
}

impl FileStore for ObjectFiles {
    fn name(&self) -> &str {
        self.shared.guard.name()
    }

    fn upload<'a>(
        &'a self,
        key: &'a str,
        content_type: &'a str,
        body: &'a mut FileBody,
    ) -> FileFuture<'a, u64> {
        Box::pin(async move {
            let path = path_of("uploading a file", key)?;
            let (pieces, is_all) = body.take(self.shared.part_bytes).await.map_err(source_error)?;
            if is_all {
                return self.shared.put(&path, content_type, pieces).await;
            }
            // A store that is away says so before the source is used up, so that another store can have it all.
            body.prepend(pieces);
            upload_in_parts(&self.shared, &path, content_type, body).await
        })
    }

    fn download<'a>(&'a self, key: &'a str, range: Option<Range<u64>>) -> FileFuture<'a, FileContent> {
        Box::pin(async move {
            let path = path_of("downloading a file", key)?;
            let found = self.shared.get(&path, range, None).await?;
            let content_type =
                found.attributes.get(&Attribute::ContentType).map(|value| value.as_ref().to_owned());
            let metadata =
                FileMetadata { bytes: found.meta.size, content_type, etag: found.meta.e_tag.clone() };
            Ok(FileContent { metadata, body: resumed_body(Arc::clone(&self.shared), path, found) })
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> FileFuture<'a, ()> {
        Box::pin(async move {
            let path = path_of("deleting a file", key)?;
            match self.shared.request("deleting a file", &path, || self.shared.store.delete(&path)).await {
                Err(error) if error.is_not_found() => Ok(()),
                result => result,
            }
        })
    }

    fn metadata<'a>(&'a self, key: &'a str) -> FileFuture<'a, Option<FileMetadata>> {
        Box::pin(async move {
            let path = path_of("looking for a file", key)?;
            let found = self.shared.head(&path).await?;
            Ok(found.map(|meta| FileMetadata { bytes: meta.size, content_type: None, etag: meta.e_tag }))
        })
    }
}

impl fmt::Debug for ObjectFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFiles").field("name", &self.shared.guard.name()).finish_non_exhaustive()
    }
}
