//! Answers.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use seawall::{Deadline, Fault};
use serde::de::DeserializeOwned;
use tokio::time::Sleep;

use crate::client::{FOR_A_BODY, Wire};
use crate::error::{Cause, HttpError};
use crate::fault::of_status;

/// An answer, read whole.
///
/// A status that is a fault is still an answer: a guard counts it and retries it, and who called gets the last one.
/// [`good`](Response::good) makes an error of it.
#[derive(Clone)]
pub struct Response {
    pub(crate) head: Head,
    pub(crate) body: Bytes,
    pub(crate) cut: Option<Cut>,
}

/// Why the rest of an answer is missing, of which only the beginning was wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cut {
    /// It is longer than what is kept.
    TooLarge {
        /// The number of bytes that are kept.
        kept: usize,
    },
    /// The connection broke.
    BrokeOff {
        /// The error, in one line.
        cause: String,
    },
    /// It did not end within the attempt's time.
    Late,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cut::TooLarge { kept } => write!(f, "the answer is larger than {kept} bytes"),
            Cut::BrokeOff { cause } => write!(f, "the answer broke off: {cause}"),
            Cut::Late => f.write_str("the answer did not end in time"),
        }
    }
}

/// What is known when the headers have come.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) timings: Timings,
    pub(crate) wait: Option<Duration>,
    pub(crate) only_success: bool,
    pub(crate) attempt: u32,
    /// The credentials that were refused have been thrown away, and there will be others.
    pub(crate) stale_credentials: bool,
}

/// How long an attempt took, for its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Timings {
    /// Name, connection and TLS, if this attempt opened a connection.
    pub connect: Option<Duration>,
    /// From the start to the headers of the answer.
    pub first_byte: Duration,
    /// From the start to the end of the answer.
    pub total: Duration,
    /// How often the request was written: twice if it was sent again at once with a new token.
    pub sends: u32,
}

impl Head {
    pub(crate) fn fault(&self) -> Option<Fault> {
        let fault = of_status(self.status, self.wait, self.only_success)?;
        // Another token may be welcome where this one was not, and the request was not served.
        let stale = Fault::unreachable().code(fault.protocol_code());
        Some(if self.stale_credentials { stale } else { fault })
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, name: &str, bytes: Option<usize>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct(name)
            .field("status", &self.status)
            .field("headers", &names)
            .field("body_bytes", &bytes)
            .field("timings", &self.timings)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Why the rest of the body is missing, if it is. Only for requests with
    /// [`sample_response`](crate::Request::sample_response).
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// The body, by value.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// The address that was connected to: of the peer, or of the proxy.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.head.peer
    }

    /// How long the attempt took.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.head.timings
    }

    /// The number of the attempt that this is the answer to, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.head.attempt
    }

    /// What the status means, or `None` for a success.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.head.fault()
    }

    /// Itself if its status is no fault, else an error.
    pub fn good(self) -> Result<Self, HttpError> {
        if self.fault().is_none() { Ok(self) } else { Err(Cause::Status(Box::new(self)).into()) }
    }

    /// As [`good`](Response::good), but a 404 is no error: there is no such thing, and that is an answer. Inside of an
    /// operation this keeps a failover and a fallback from treating it as a failure.
    pub fn good_or_not_found(self) -> Result<Option<Self>, HttpError> {
        if self.is_not_found() { Ok(None) } else { self.good().map(Some) }
    }

    /// True if the status is 404.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.head.status == StatusCode::NOT_FOUND
    }

    /// The body, read as JSON. What can't be read is an error that is not retried: see [`HttpError::decode`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(HttpError::decode)
    }
}

/// Shows no values of headers and no body: that is where secrets are.
impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.show(f, "Response", Some(self.body.len()))
    }
}

/// An answer whose body is still to be read.
pub struct Opened {
    pub(crate) head: Head,
    pub(crate) body: BodyStream,
}

impl Opened {
    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How long the attempt took so far.
    #[must_use]
    pub fn timings(&self) -> Timings {
        self.head.timings
    }

    /// What the status means, or `None` for a success.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.head.fault()
    }

    /// The body, to be read piece by piece.
    pub fn body(&mut self) -> &mut BodyStream {
        &mut self.body
    }

    /// The body, by value.
    #[must_use]
    pub fn into_body(self) -> BodyStream {
        self.body
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.show(f, "Opened", None)
    }
}

/// The body of an answer. Its size and the time for it are bounded as those of a whole answer are: it ends with an error when
/// the attempt's deadline passes, however it trickles.
pub struct BodyStream {
    body: Incoming,
    read: u64,
    limit: u64,
    late: Option<Pin<Box<Sleep>>>,
    /// The connection that it comes through, if nobody else drives that.
    wire: Option<Box<Wire>>,
}

impl BodyStream {
    pub(crate) fn new(body: Incoming, limit: u64, left: Option<Duration>) -> Self {
        BodyStream {
            body,
            read: 0,
            limit,
            late: left.map(|left| Box::pin(tokio::time::sleep(left))),
            wire: None,
        }
    }

    /// It comes through this connection, which nobody else drives.
    pub(crate) fn driven(mut self, wire: Option<Wire>) -> Self {
        self.wire = wire.map(Box::new);
        self
    }

    /// What the peer announces must not be more than the limit.
    pub(crate) fn check_length(&self) -> Result<(), HttpError> {
        if self.body.size_hint().lower() > self.limit {
            return Err(Cause::TooLarge { limit: self.limit }.into());
        }
        Ok(())
    }

    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(frame) = self.frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

pub(crate) fn time_left(deadline: Option<Deadline>) -> Option<Duration> {
    deadline.map(|deadline: Deadline| deadline.remaining())
}

impl HttpBody for BodyStream {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = self.get_mut();
        // Asked first: a peer that always has another byte must not keep us from looking at the time.
        if let Some(late) = &mut this.late
            && late.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(Cause::Late.into())));
        }
        let body = &mut this.body;
        let polled = match &mut this.wire {
            None => Pin::new(body).poll_frame(cx),
            Some(wire) => match wire.poll(FOR_A_BODY, cx, |cx| Pin::new(&mut *body).poll_frame(cx)) {
                Poll::Pending if wire.has_ended() => {
                    let broken = Cause::Body("the connection was closed".into());
                    return Poll::Ready(Some(Err(broken.into())));
                }
                polled => polled,
            },
        };
        let frame = match ready!(polled) {
            None => return Poll::Ready(None),
            Some(frame) => frame.map_err(|error| HttpError::from(Cause::Body(error.into())))?,
        };
        this.read += frame.data_ref().map_or(0, |data| data.len() as u64);
        if this.read > this.limit {
            return Poll::Ready(Some(Err(Cause::TooLarge { limit: this.limit }.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyStream")
            .field("read", &self.read)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
