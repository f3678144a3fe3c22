//! Downloads that go on where they broke off.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;
use object_store::GetResult;
use object_store::path::Path;
use seawall::Fault;
use tokio::time::timeout;

use super::config::RESUMES_MAX;
use super::object::SharedFiles;
use crate::body::FileBody;
use crate::error::FileError;
use crate::fault::fault_of;
use crate::stream::unfold;

/// A download between two chunks.
struct Download {
    shared: Arc<SharedFiles>,
    path: Path,
    /// The version of the file: the rest of another one must not be put behind the beginning of this one.
    etag: Option<String>,
    /// What is still to come.
    rest: Range<u64>,
    stream: Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>,
    resumes: u32,
    failed: bool,
}

/// The bytes of a file. When the connection breaks or is silent, the rest is asked for.
pub(super) fn resumed_body(shared: Arc<SharedFiles>, path: Path, found: GetResult) -> FileBody {
    let (etag, rest) = (found.meta.e_tag.clone(), found.range.clone());
    let stream = found.into_stream();
    let download = Download { shared, path, etag, rest, stream, resumes: 0, failed: false };
    FileBody::from_stream(unfold(download, |mut download| async move {
        let next = download.next().await?;
        download.failed = next.is_err();
        Some((next.map_err(io::Error::other), download))
    }))
}

impl Download {
    async fn next(&mut self) -> Option<Result<Bytes, FileError>> {
        if self.rest.is_empty() || self.failed {
            return None;
        }
        loop {
            match self.read().await {
                Ok(chunk) => {
                    self.rest.start += chunk.len() as u64;
                    return Some(Ok(chunk));
                }
                Err(error) if !self.may_resume(&error) => return Some(Err(error)),
                Err(_) => {}
            }
            self.resumes += 1;
            match self.shared.get(&self.path, Some(self.rest.clone()), self.etag.clone()).await {
                Ok(found) => self.stream = found.into_stream(),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Without a mark of its version, nobody knows whether the rest belongs to the same file.
    fn may_resume(&self, error: &FileError) -> bool {
        error.fault().is_transient() && self.etag.is_some() && self.resumes < RESUMES_MAX
    }

    async fn read(&mut self) -> Result<Bytes, FileError> {
        let stream = &mut self.stream;
        let next = std::future::poll_fn(|context| stream.as_mut().poll_next(context));
        let error = |fault| FileError::of_fault("downloading a file", fault);
        match timeout(self.shared.idle_timeout, next).await {
            Err(_) => Err(error(Fault::timeout()).with_cause("the store sent nothing for too long")),
            Ok(None) => Err(error(Fault::io()).with_cause("the store sent fewer bytes than it announced")),
            Ok(Some(Err(cause))) => Err(error(fault_of(&cause)).with_cause(cause)),
            Ok(Some(Ok(chunk))) => Ok(chunk),
        }
    }
}
