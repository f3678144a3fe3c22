//! Bodies at the front door: those of answers from two sides, and those of requests that have to come in time.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::gateway::Relay;
use crate::responses::HeldBytes;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
#[allow(
    clippy::large_enum_variant,
    reason = "each is made once and moved once, and a box would cost more; how large one is depends on the features of others"
)]
pub(super) enum ResponseBody {
    /// Of the hub's own, with the memory that it takes, if it is a large one.
    Own(axum::body::Body, Option<HeldBytes>),
    /// Of an upstream's.
    Relay(Relay),
}

impl ResponseBody {
    /// A small one.
    pub(super) fn own(body: axum::body::Body) -> Self {
        ResponseBody::Own(body, None)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.get_mut() {
            ResponseBody::Own(body, held) => {
                let polled = Pin::new(body).poll_frame(cx).map_err(Into::into);
                let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
                // It comes in one piece, which is in memory until it is written.
                Poll::Ready(Some(Ok(match held.take() {
                    Some(held) => frame.map_data(|data| held.of(data)),
                    None => frame,
                })))
            }
            ResponseBody::Relay(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Own(body, _) => body.is_end_stream(),
            ResponseBody::Relay(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Own(body, _) => body.size_hint(),
            ResponseBody::Relay(body) => body.size_hint(),
        }
    }
}

/// The body of a request to the API has so long to come.
const WITHIN: Duration = Duration::from_secs(30);

/// A body that has to come in time. Most are there when they are asked for, and cost no timer.
pub(super) struct TimedBody {
    body: Incoming,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(super) fn new(body: Incoming) -> Self {
        TimedBody { body, timer: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        if this.timer.is_none() && frame.is_ready() {
            return frame.map_err(Into::into);
        }
        // Asked also when there is another piece: a client that always has one more byte has its limit too.
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(WITHIN)));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(BodyTimeout.into())));
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Debug)]
struct BodyTimeout;

impl fmt::Display for BodyTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the body did not come within {WITHIN:?}")
    }
}

impl std::error::Error for BodyTimeout {}
