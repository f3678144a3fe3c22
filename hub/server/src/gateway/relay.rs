//! An answer that is passed on while it comes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::StatusCode;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use seawall::Deadline;
use seawall_http::{HeldBody, HttpError};
use seawall_hub_core::service::GuardedService;
use tokio::sync::Notify;

use crate::serve::ConnectionLimits;
use crate::spans::GatewaySpan;

/// The body of an answer that is passed on. As long as it is not over, its connection has a deadline: a client that does not
/// read must not keep a place in the bulkhead for longer.
pub(crate) struct Relay {
    body: HeldBody,
    end: RelayEnd,
    line: Option<Arc<ConnectionLimits>>,
    moved: Arc<Notify>,
}

/// What is told when it is over.
pub(super) struct RelayEnd {
    pub(super) target: GuardedService,
    /// Whether the answer is a fault, or has broken off.
    pub(super) failed: bool,
    /// For whoever follows its trace.
    pub(super) passage: Option<(Box<GatewaySpan>, StatusCode)>,
}

impl Relay {
    pub(super) fn new(
        body: HeldBody,
        end: RelayEnd,
        deadline: Option<Deadline>,
        line: &Arc<ConnectionLimits>,
        moved: &Arc<Notify>,
    ) -> Self {
        let line = (!body.is_over()).then(|| line.clone());
        if let Some(line) = &line {
            line.expect_end_by(deadline);
        }
        Relay { body, end, line, moved: moved.clone() }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if let Poll::Ready(Some(Err(error))) = &polled {
            this.end.failed = true;
            if let Some((passage, status)) = this.end.passage.take() {
                passage.answered(status, Some(error.to_string()));
            }
            if let Some(line) = &this.line {
                // It ends here, and must not look as if that was its end.
                line.abort();
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.expect_end_by(None);
        }
        if self.end.target.may_have_moved(self.end.failed) {
            self.moved.notify_one();
        }
        if let Some((passage, status)) = self.end.passage.take() {
            let left = (!self.body.is_end_stream()).then(|| "the client went away before the end".to_owned());
            passage.answered(status, left);
        }
    }
}
