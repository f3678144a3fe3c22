//! The bytes of a file on their way.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::error::FileRefusal;
use crate::stream::unfold;

/// The number of bytes that are read from a file or a reader at a time.
pub const READ_BYTES: usize = 64 * 1_024;

/// Chunks below this size are put together, so that a source that gives single bytes does not cost thirty times its size.
const SMALL_CHUNK_BYTES: usize = 8 * 1_024;

type ByteStream = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The bytes of a file, as a stream. Made of bytes, of a file on disk, of a reader or of any stream.
///
/// It is a [`Stream`] of `io::Result<Bytes>`, so that it can be handed to a web framework as it is.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use seawall_files::FileBody;
/// let body = FileBody::from_reader(&b"a report"[..]);
/// assert_eq!(body.collect(1_000).await?, "a report");
/// # Ok(()) }
/// ```
pub struct FileBody {
    stream: ByteStream,
    /// Chunks that were taken from the stream and given back.
    unread: VecDeque<Bytes>,
    replay: Replay,
    rules: Option<SizeRules>,
    received: u64,
    refusal: Option<FileRefusal>,
    /// Whether the stream itself failed.
    failed: bool,
    touched: bool,
}

/// What the bytes can be read from again.
#[derive(Clone)]
enum Replay {
    Pieces(Vec<Bytes>),
    File(PathBuf),
    Never,
}

#[derive(Clone, Copy, Debug)]
struct SizeRules {
    declared: Option<u64>,
    bytes_max: u64,
}

impl FileBody {
    /// Takes the bytes of a stream. It can be read once.
    pub fn from_stream(stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        FileBody::new(Box::pin(stream), Replay::Never)
    }

    /// Takes the bytes of a reader. It can be read once.
    pub fn from_reader(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        FileBody::from_stream(chunks_of(reader))
    }

    /// Takes the bytes of a file on disk, which is opened when they are needed, and again for each attempt.
    pub fn from_path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        FileBody::new(Box::pin(file_chunks(path.clone())), Replay::File(path))
    }

    pub(crate) fn from_pieces(pieces: Vec<Bytes>) -> Self {
        FileBody::new(Box::pin(Pieces(pieces.clone().into())), Replay::Pieces(pieces))
    }

    /// Puts bytes that were taken from this body and kept elsewhere before what is still to be read.
    pub(crate) fn preceded_by(mut self, first: FileBody, bytes: u64) -> Self {
        let unread = FileBody::from_pieces(std::mem::take(&mut self.unread).into());
        let rest = std::mem::replace(&mut self.stream, Box::pin(Pieces(VecDeque::new())));
        let rest = FileBody::new(rest, Replay::Never);
        self.received -= bytes;
        self.stream = Box::pin(unfold(([first, unread, rest], 0), |(mut bodies, mut index)| async move {
            while let Some(body) = bodies.get_mut(index) {
                match body.next().await {
                    Some(next) => return Some((next, (bodies, index))),
                    None => index += 1,
                }
            }
            None
        }));
        self
    }

    fn new(stream: ByteStream, replay: Replay) -> Self {
        FileBody {
            stream,
            unread: VecDeque::new(),
            replay,
            rules: None,
            received: 0,
            refusal: None,
            failed: false,
            touched: false,
        }
    }

    /// Refuses more bytes than the maximum, none at all, and another number than was declared.
    pub(crate) fn with_rules(mut self, declared: Option<u64>, bytes_max: u64) -> Self {
        self.rules = Some(SizeRules { declared, bytes_max });
        self
    }

    /// Waits for the next chunk; `None` at the end.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Reads everything, as long as it is at most so many bytes.
    pub async fn collect(mut self, bytes_max: usize) -> io::Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next().await {
            let chunk = chunk?;
            if all.len() + chunk.len() > bytes_max {
                let text = format!("the file has more than {bytes_max} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    /// Writes everything to a writer, flushes it, and returns the number of bytes.
    pub async fn write_to(mut self, mut writer: impl AsyncWrite + Unpin) -> io::Result<u64> {
        let mut count = 0;
        while let Some(chunk) = self.next().await {
            let chunk = chunk?;
            writer.write_all(&chunk).await?;
            count += chunk.len() as u64;
        }
        writer.flush().await?;
        Ok(count)
    }

    /// Reads up to so many bytes, in few pieces. The second value is true at the end of the file.
    pub(crate) async fn take(&mut self, bytes: usize) -> io::Result<(Vec<Bytes>, bool)> {
        let (mut pieces, mut small, mut count) = (Vec::new(), BytesMut::new(), 0);
        while count < bytes {
            let Some(chunk) = self.next().await else {
                pieces.extend((!small.is_empty()).then(|| small.freeze()));
                return Ok((pieces, true));
            };
            let mut chunk = chunk?;
            if chunk.len() > bytes - count {
                self.give_back(chunk.split_off(bytes - count));
            }
            count += chunk.len();
            if chunk.len() < SMALL_CHUNK_BYTES {
                small.extend_from_slice(&chunk);
            } else {
                pieces.extend((!small.is_empty()).then(|| small.split().freeze()));
                pieces.push(chunk);
            }
        }
        pieces.extend((!small.is_empty()).then(|| small.freeze()));
        // The end may be exactly here.
        match self.next().await {
            None => Ok((pieces, true)),
            Some(chunk) => {
                self.give_back(chunk?);
                Ok((pieces, false))
            }
        }
    }

    fn give_back(&mut self, chunk: Bytes) {
        self.received -= chunk.len() as u64;
        self.unread.push_front(chunk);
    }

    /// Puts pieces before what is still to be read.
    pub(crate) fn prepend(&mut self, pieces: Vec<Bytes>) {
        for piece in pieces.into_iter().rev() {
            self.give_back(piece);
        }
        self.touched = false;
    }

    /// Goes back to the beginning. Returns false if the bytes can't be had again.
    pub(crate) fn rewind(&mut self) -> bool {
        if !self.touched {
            return true;
        }
        let Some(stream) = self.replay.stream() else { return false };
        let (replay, rules) = (self.replay.clone(), self.rules);
        *self = FileBody { rules, ..FileBody::new(stream, replay) };
        true
    }

    /// The rule that the bytes break, as far as they have come.
    pub(crate) fn refusal(&self) -> Option<&FileRefusal> {
        self.refusal.as_ref()
    }

    /// Whether the source of the bytes failed.
    pub(crate) fn is_failed(&self) -> bool {
        self.failed
    }

    /// Counts a chunk, or the end, against the rules.
    fn check(&mut self, chunk: Option<&Bytes>) -> Result<(), FileRefusal> {
        self.received += chunk.map_or(0, |chunk| chunk.len() as u64);
        let Some(SizeRules { declared, bytes_max }) = self.rules else { return Ok(()) };
        let received = self.received;
        if received > bytes_max {
            return Err(FileRefusal::TooLarge { bytes_max });
        }
        let is_end = chunk.is_none();
        match declared {
            Some(declared) if received > declared || (is_end && received < declared) => {
                Err(FileRefusal::SizeMismatch { declared, received })
            }
            _ if is_end && received == 0 => Err(FileRefusal::Empty),
            _ => Ok(()),
        }
    }
}

impl Replay {
    fn stream(&self) -> Option<ByteStream> {
        match self {
            Replay::Pieces(pieces) => Some(Box::pin(Pieces(pieces.clone().into()))),
            Replay::File(path) => Some(Box::pin(file_chunks(path.clone()))),
            Replay::Never => None,
        }
    }
}

impl Stream for FileBody {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let this = self.get_mut();
        if let Some(refusal) = &this.refusal {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::InvalidData, refusal.to_string()))));
        }
        let next = match this.unread.pop_front() {
            Some(chunk) => Some(Ok(chunk)),
            None => ready!(this.stream.as_mut().poll_next(context)),
        };
        this.touched = true;
        let checked = match &next {
            Some(Err(_)) => {
                this.failed = true;
                return Poll::Ready(next);
            }
            Some(Ok(chunk)) => this.check(Some(chunk)),
            None => this.check(None),
        };
        Poll::Ready(match checked {
            Ok(()) => next,
            Err(refusal) => {
                let error = io::Error::new(io::ErrorKind::InvalidData, refusal.to_string());
                this.refusal = Some(refusal);
                Some(Err(error))
            }
        })
    }
}

impl From<Bytes> for FileBody {
    fn from(bytes: Bytes) -> Self {
        FileBody::from_pieces(vec![bytes])
    }
}

impl From<Vec<u8>> for FileBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<&'static str> for FileBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBody").field("received", &self.received).finish_non_exhaustive()
    }
}

/// A stream of chunks that are there. Empty ones are left out.
struct Pieces(VecDeque<Bytes>);

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        while let Some(piece) = self.0.pop_front() {
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(piece)));
            }
        }
        Poll::Ready(None)
    }
}

/// The chunks of a file, which is opened for the first one.
fn file_chunks(path: PathBuf) -> impl Stream<Item = io::Result<Bytes>> + Send {
    unfold((path, None), |(path, open)| async move {
        let file = match open {
            Some(file) => Ok(file),
            None => tokio::fs::File::open(&path).await,
        };
        match file {
            Ok(mut file) => Some((read_chunk(&mut file).await.transpose()?, (path, Some(file)))),
            Err(error) => Some((Err(error), (path, None))),
        }
    })
}

fn chunks_of(
    reader: impl AsyncRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    unfold(reader, |mut reader| async move { Some((read_chunk(&mut reader).await.transpose()?, reader)) })
}

/// Reads the next chunk; `None` at the end.
async fn read_chunk(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Bytes>> {
    let mut chunk = BytesMut::with_capacity(READ_BYTES);
    let count = reader.read_buf(&mut chunk).await?;
    Ok((count > 0).then(|| chunk.freeze()))
}
