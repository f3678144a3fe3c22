//! What whoever called through [`hold`](super::HttpClient::hold) has in hand: the answer's head, and a body that drives the call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use seawall::{Deadline, Fault};

use super::held::{Calling, Pipe};
use crate::error::{Cause, HttpError};
use crate::response::{BodyStream, Head};

/// An answer whose body is to be read, with a call that lasts until then.
pub struct Held {
    pub(super) head: Head,
    pub(super) deadline: Option<Deadline>,
    pub(super) body: HeldBody,
}

impl Held {
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

    /// When its body must have been read.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// The headers and the body, by value.
    #[must_use]
    pub fn into_parts(self) -> (HeaderMap, HeldBody) {
        (self.head.headers, self.body)
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("status", &self.head.status).finish_non_exhaustive()
    }
}

/// The body of an answer, with the call that it belongs to.
pub struct HeldBody {
    pub(super) first: Option<Frame<Bytes>>,
    pub(super) rest: Rest,
}

pub(super) enum Rest {
    Over,
    Passing(Passing),
    After(Option<BodyStream>),
}

/// The call is under way, and hands out one piece after the other.
pub(super) struct Passing {
    pub(super) call: Calling,
    pub(super) pipe: Arc<Pipe>,
    pub(super) hint: SizeHint,
}

impl HeldBody {
    /// Whether all of it is here: there is nothing more to wait for.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.rest, Rest::Over | Rest::After(None))
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match &mut self.rest {
            Rest::Over | Rest::After(None) => Poll::Ready(None),
            Rest::After(Some(rest)) => Pin::new(rest).poll_frame(cx),
            Rest::Passing(Passing { call, pipe, .. }) => {
                let ended = call.as_mut().poll(cx);
                let frame = pipe.lock().frame.take();
                if let Poll::Ready(ended) = ended {
                    self.rest = Rest::Over;
                    if let Err(error) = ended {
                        let late = || Cause::Late.into();
                        return Poll::Ready(Some(Err(error.into_last().unwrap_or_else(late))));
                    }
                    return Poll::Ready(frame.map(Ok));
                }
                frame.map_or(Poll::Pending, |frame| Poll::Ready(Some(Ok(frame))))
            }
        }
    }
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = self.get_mut();
        match this.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => this.poll_rest(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
        match &self.rest {
            Rest::Over | Rest::After(None) => SizeHint::with_exact(first),
            // As it was announced. Nobody asks again once it has begun.
            Rest::Passing(passing) => passing.hint,
            Rest::After(Some(rest)) => plus(&rest.size_hint(), first),
        }
    }
}

/// A hint for so many bytes more.
pub(crate) fn plus(hint: &SizeHint, first: u64) -> SizeHint {
    let mut both = SizeHint::new();
    both.set_lower(hint.lower() + first);
    if let Some(upper) = hint.upper() {
        both.set_upper(upper + first);
    }
    both
}

/// Whoever drops a body halfway does not want the rest. The call is told so, or its circuit would take it for one that was given
/// up because the peer is slow.
impl Drop for HeldBody {
    fn drop(&mut self) {
        if let Rest::Passing(Passing { call, pipe, .. }) = &mut self.rest
            && !std::thread::panicking()
        {
            pipe.lock().unwanted = true;
            let _ = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl fmt::Debug for HeldBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldBody").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}
