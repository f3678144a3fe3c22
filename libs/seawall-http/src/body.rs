//! Bodies: of requests, to be sent once or again, and of answers, bounded in size and time.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

use crate::client::plus;
use crate::error::{BadRequest, BoxError, Cause, HttpError};

/// The body of a request.
pub struct Body(Kind);

enum Kind {
    Bytes(Bytes),
    /// Taken by the first attempt.
    Stream(Mutex<Option<UnsyncBoxBody<Bytes, BoxError>>>, Arc<AtomicBool>),
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Body(Kind::Bytes(Bytes::new()))
    }

    /// A body that is sent while it is made. It can be sent once: a call with it has one attempt.
    #[must_use]
    pub fn stream<B>(body: B) -> Self
    where
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let stream = Source(Box::pin(body)).boxed_unsync();
        Body(Kind::Stream(Mutex::new(Some(stream)), Arc::default()))
    }

    /// Reads a stream into memory, so that it can be sent again, if it has at most so many bytes. A longer one stays a stream:
    /// it is sent whole, and once.
    pub async fn buffered<B>(mut body: B, bytes_max: usize) -> Result<Self, B::Error>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>> + Send,
    {
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            read.extend_from_slice(&data);
            if read.len() > bytes_max {
                return Ok(Body::stream(After { first: Some(read.freeze()), rest: body }));
            }
        }
        Ok(read.freeze().into())
    }

    /// The bytes, unless it is a stream.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Bytes(bytes) => Some(bytes),
            Kind::Stream(..) => None,
        }
    }

    /// Whether an attempt waits for the rest of it: then it is not the peer that keeps everybody waiting.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(&self.0, Kind::Stream(_, awaited) if awaited.load(Ordering::Relaxed))
    }

    /// What one attempt sends.
    pub(crate) fn outgoing(&self) -> Result<Outgoing, HttpError> {
        match &self.0 {
            Kind::Bytes(bytes) => Ok(Outgoing::Bytes(Full::new(bytes.clone()))),
            Kind::Stream(stream, awaited) => {
                let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                // A second attempt with nothing in it would be worse than none.
                let outgoing = |stream| Outgoing::Stream(stream, awaited.clone());
                stream.map(outgoing).ok_or_else(|| Cause::Request(BadRequest::BodyGone).into())
            }
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Body(Kind::Bytes(bytes.into()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes() {
            Some(bytes) => write!(f, "{} bytes", bytes.len()),
            None => f.write_str("a stream"),
        }
    }
}

/// A stream that somebody else makes. Its length is known if they know it.
struct Source<B>(Pin<Box<B>>);

impl<B> HttpBody for Source<B>
where
    B: HttpBody,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let whole = |frame: Frame<B::Data>| frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
        let frame = ready!(self.0.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(whole).map_err(|error| SourceBroke(error.into()).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// A body that could not be made: our own trouble, and no fault of the peer.
#[derive(Debug)]
pub(crate) struct SourceBroke(BoxError);

impl fmt::Display for SourceBroke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body could not be made")
    }
}

impl StdError for SourceBroke {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

/// A stream of which the beginning was read already.
struct After<B> {
    first: Option<Bytes>,
    rest: B,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for After<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn size_hint(&self) -> SizeHint {
        plus(&self.rest.size_hint(), self.first.as_ref().map_or(0, |first| first.len() as u64))
    }
}

/// What goes to the connection.
pub(crate) enum Outgoing {
    Bytes(Full<Bytes>),
    /// And whether its next piece is waited for.
    Stream(UnsyncBoxBody<Bytes, BoxError>, Arc<AtomicBool>),
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            Outgoing::Bytes(full) => Poll::Ready(
                ready!(Pin::new(full).poll_frame(cx)).map(|frame| frame.map_err(|never| match never {})),
            ),
            Outgoing::Stream(stream, awaited) => {
                let frame = Pin::new(stream).poll_frame(cx);
                awaited.store(frame.is_pending(), Ordering::Relaxed);
                frame
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Bytes(full) => full.is_end_stream(),
            Outgoing::Stream(stream, _) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Outgoing::Bytes(full) => full.size_hint(),
            Outgoing::Stream(stream, _) => stream.size_hint(),
        }
    }
}
