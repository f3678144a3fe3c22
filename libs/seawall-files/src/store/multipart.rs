//! Large files in parts: each part is retried from its buffer, and an upload that fails leaves nothing behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartId, MultipartUpload, PutMultipartOptions, PutPayload};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::FileFuture;
use super::object::{SharedFiles, source_error};
use crate::body::FileBody;
use crate::error::FileError;

/// How long the store may take to forget an upload that failed.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long parts that are on their way may take when their upload has failed.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of failed uploads that are remembered because the store was away when they failed.
const UNFINISHED_MAX: usize = 1_000;

/// Uploads that failed while the store was away, so that it could not be told. It is told after the next upload that succeeds.
#[derive(Debug, Default)]
pub(super) struct UnfinishedUploads(Mutex<Vec<(Path, MultipartId)>>);

impl UnfinishedUploads {
    fn add(&self, path: Path, id: MultipartId) {
        let mut uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if uploads.len() < UNFINISHED_MAX {
            uploads.push((path, id));
        }
    }

    fn take(&self) -> Vec<(Path, MultipartId)> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Uploads a file of more than one part.
pub(super) async fn upload_in_parts(
    shared: &Arc<SharedFiles>,
    path: &Path,
    content_type: &str,
    body: &mut FileBody,
) -> Result<u64, FileError> {
    let attributes = shared.attributes(content_type, true);
    let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
    let Some(parts) = shared.parts.clone() else { return upload_in_order(shared, path, options, body).await };
    let id = BeginUpload::new(shared, &parts, path, options).await?;
    let mut upload = PartUpload {
        shared: Arc::clone(shared),
        parts,
        path: path.clone(),
        id: Some(Arc::new(id)),
        sending: JoinSet::new(),
        sent: Vec::new(),
    };
    let result = upload.run(body).await;
    if result.is_ok() {
        upload.id = None;
        forget_unfinished(shared);
    } else {
        upload.abort().await;
    }
    result
}

/// The request that begins an upload. If its caller drops it, it goes on for a while, because the store may have begun an upload
/// that nobody knows the name of.
struct BeginUpload {
    request: Option<FileFuture<'static, MultipartId>>,
    shared: Arc<SharedFiles>,
    parts: Arc<dyn MultipartStore>,
    path: Path,
}

impl BeginUpload {
    fn new(
        shared: &Arc<SharedFiles>,
        parts: &Arc<dyn MultipartStore>,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Self {
        let (owner, store, key) = (Arc::clone(shared), Arc::clone(parts), path.clone());
        let request = async move {
            let begin = || store.create_multipart_opts(&key, options.clone());
            owner.request("beginning an upload", &key, begin).await
        };
        let (shared, parts) = (Arc::clone(shared), Arc::clone(parts));
        BeginUpload { request: Some(Box::pin(request)), shared, parts, path: path.clone() }
    }
}

impl Future for BeginUpload {
    type Output = Result<MultipartId, FileError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(request) = &mut self.request else { return Poll::Pending };
        let begun = ready!(request.as_mut().poll(context));
        self.request = None;
        Poll::Ready(begun)
    }
}

impl Drop for BeginUpload {
    fn drop(&mut self) {
        let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current()) else { return };
        let (shared, parts, path) = (Arc::clone(&self.shared), Arc::clone(&self.parts), self.path.clone());
        runtime.spawn(async move {
            if let Ok(Ok(id)) = timeout(ABORT_TIMEOUT, request).await {
                abort(&shared, &*parts, &path, &id).await;
            }
        });
    }
}

/// An upload in parts, of which several are sent at once.
struct PartUpload {
    shared: Arc<SharedFiles>,
    parts: Arc<dyn MultipartStore>,
    path: Path,
    /// The name that the store gave the upload; `None` when it has ended.
    id: Option<Arc<MultipartId>>,
    sending: JoinSet<Result<(usize, PartId), FileError>>,
    sent: Vec<(usize, PartId)>,
}

impl PartUpload {
    async fn run(&mut self, body: &mut FileBody) -> Result<u64, FileError> {
        let (mut total, mut index, mut is_all) = (0, 0, false);
        while !is_all {
            let pieces;
            (pieces, is_all) = body.take(self.shared.part_bytes).await.map_err(source_error)?;
            total += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
            self.wait_for_room(self.shared.parallel_parts - 1).await?;
            self.start_part(index, pieces);
            index += 1;
        }
        self.wait_for_room(0).await?;
        self.sent.sort_unstable_by_key(|(index, _)| *index);
        let sent: Vec<PartId> = self.sent.drain(..).map(|(_, part)| part).collect();
        self.complete(sent, total).await?;
        Ok(total)
    }

    fn start_part(&mut self, index: usize, pieces: Vec<Bytes>) {
        let Some(id) = self.id.clone() else { return };
        let (shared, parts, path) = (Arc::clone(&self.shared), Arc::clone(&self.parts), self.path.clone());
        let payload = PutPayload::from_iter(pieces);
        self.sending.spawn(async move {
            let put = || parts.put_part(&path, &id, index, payload.clone());
            Ok((index, shared.request("uploading a part", &path, put).await?))
        });
    }

    /// Waits until at most so many parts are on their way.
    async fn wait_for_room(&mut self, sending_max: usize) -> Result<(), FileError> {
        while self.sending.len() > sending_max {
            match self.sending.join_next().await {
                Some(Ok(sent)) => self.sent.push(sent?),
                Some(Err(error)) => {
                    return Err(
                        FileError::of_fault("uploading a part", seawall::Fault::system()).with_cause(error)
                    );
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Makes a file of the parts. An answer that was lost leaves a file that is complete and an upload that is unknown, so the
    /// file itself is looked at before the upload counts as failed.
    async fn complete(&self, sent: Vec<PartId>, total: u64) -> Result<(), FileError> {
        let Some(id) = &self.id else { return Ok(()) };
        let complete = || self.parts.complete_multipart(&self.path, id, sent.clone());
        let Err(error) = self.shared.request("completing an upload", &self.path, complete).await else {
            return Ok(());
        };
        let is_complete =
            matches!(self.shared.head(&self.path).await, Ok(Some(found)) if found.size == total);
        if is_complete { Ok(()) } else { Err(error) }
    }

    async fn abort(&mut self) {
        drain(&mut self.sending).await;
        if let Some(id) = self.id.take() {
            abort(&self.shared, &*self.parts, &self.path, &id).await;
        }
    }
}

/// A caller that drops its upload leaves nothing behind either.
impl Drop for PartUpload {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (shared, parts, path) = (Arc::clone(&self.shared), Arc::clone(&self.parts), self.path.clone());
        let mut sending = std::mem::take(&mut self.sending);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                drain(&mut sending).await;
                abort(&shared, &*parts, &path, &id).await;
            })),
            Err(_) => shared.unfinished.add(path, (*id).clone()),
        }
    }
}

/// Waits for parts that are on their way. A part that arrives after the upload was forgotten would stay for ever.
async fn drain(sending: &mut JoinSet<Result<(usize, PartId), FileError>>) {
    let _ = timeout(DRAIN_TIMEOUT, async { while sending.join_next().await.is_some() {} }).await;
    sending.shutdown().await;
}

/// Tells the store to forget an upload, or remembers to do so.
async fn abort(shared: &SharedFiles, parts: &dyn MultipartStore, path: &Path, id: &MultipartId) {
    // Beside the guard: its circuit may be open because of this very upload, and nobody waits for the answer.
    let aborted = timeout(ABORT_TIMEOUT, parts.abort_multipart(path, id)).await;
    match aborted {
        Ok(Ok(()) | Err(object_store::Error::NotFound { .. })) => {}
        _ => shared.unfinished.add(path.clone(), id.clone()),
    }
}

/// Tells the store of uploads that failed while it was away.
fn forget_unfinished(shared: &Arc<SharedFiles>) {
    let unfinished = shared.unfinished.take();
    let (Some(parts), false) = (shared.parts.clone(), unfinished.is_empty()) else { return };
    let shared = Arc::clone(shared);
    #[expect(
        clippy::disallowed_methods,
        reason = "each request has a time limit, and the upload that succeeded is not kept waiting"
    )]
    tokio::spawn(async move {
        for (path, id) in unfinished {
            abort(&shared, &*parts, &path, &id).await;
        }
    });
}

/// Uploads parts one after the other to a store that can't take a part twice. A part that fails ends the upload.
async fn upload_in_order(
    shared: &SharedFiles,
    path: &Path,
    options: PutMultipartOptions,
    body: &mut FileBody,
) -> Result<u64, FileError> {
    let begin = || shared.store.put_multipart_opts(path, options.clone());
    let mut upload = shared.request("beginning an upload", path, begin).await?;
    let result = send_in_order(shared, path, upload.as_mut(), body).await;
    if result.is_err() {
        let _ = timeout(ABORT_TIMEOUT, upload.abort()).await;
    }
    result
}

async fn send_in_order(
    shared: &SharedFiles,
    path: &Path,
    upload: &mut dyn MultipartUpload,
    body: &mut FileBody,
) -> Result<u64, FileError> {
    let (mut total, mut is_all) = (0, false);
    while !is_all {
        let pieces;
        (pieces, is_all) = body.take(shared.part_bytes).await.map_err(source_error)?;
        let payload = PutPayload::from_iter(pieces);
        total += payload.content_length() as u64;
        shared.single_request("uploading a part", path, || upload.put_part(payload)).await?;
    }
    shared.single_request("completing an upload", path, || upload.complete()).await?;
    Ok(total)
}
