//! The rest of a response: under the call's deadline, with messages of bounded size, and counted at its end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::{Code, Status};

use super::attempt::drop_bad_details;
use super::record::{AttemptSpan, CallRecord};
use super::run::deadline_exceeded;
use crate::fault::{CallFailure, TransportError, of_code, pushback_of};
use crate::message::MessageSizes;
use crate::policy::{Failure, Reach};
use crate::replay::Replay;

pub(super) struct RpcBody {
    body: Body,
    sizes: Option<MessageSizes>,
    deadline: Option<Pin<Box<Sleep>>>,
    span: AttemptSpan,
    replay: Replay,
    record: CallRecord,
}

impl RpcBody {
    pub(super) fn new(
        body: Body,
        span: AttemptSpan,
        replay: Replay,
        record: CallRecord,
        left: Option<Duration>,
    ) -> Self {
        let sizes = record.config().max_response_message_bytes.map(MessageSizes::new);
        let deadline = left.map(|left| Box::pin(tokio::time::sleep(left)));
        RpcBody { body, sizes, deadline, span, replay, record }
    }

    /// The call is over: nothing more is read or sent, and it is counted once.
    fn end(&mut self, code: Code) {
        self.body = Body::empty();
        self.deadline = None;
        self.span.end(code);
        self.record.finish(code);
    }

    fn fail(&mut self, status: Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.replay.cancel(Code::Cancelled, "the call is over");
        self.record.failed(status.code(), None);
        self.end(status.code());
        Poll::Ready(Some(Err(status)))
    }

    /// The status in the trailers. A failure after the commit is not retried, but it costs its token.
    fn trailers(&mut self, trailers: &HeaderMap) {
        let code =
            trailers.get("grpc-status").map_or(Code::Unknown, |status| Code::from_bytes(status.as_bytes()));
        if code != Code::Ok {
            let failure = Failure { code: code as i32, reach: Reach::Seen, pushback: pushback_of(trailers) };
            self.record.count(failure);
            self.record.failed(code, None);
        }
        self.end(code);
    }

    fn broken(&mut self, status: Status) -> Status {
        let attempts = self.record.attempts();
        if let Some(status) = self.replay.broken(attempts) {
            return status;
        }
        let Some(cause) = std::error::Error::source(&status) else { return status };
        let judged = TransportError::of(cause);
        if !judged.is_known() {
            return status;
        }
        let message = format!("the response broke off: {}", status.message());
        CallFailure::status(judged.code, message, judged.fault(), attempts, Some(status.into()))
    }
}

impl HttpBody for RpcBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let polled = {
            let _in_span = this.span.enter();
            Pin::new(&mut this.body).poll_frame(cx)
        };
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                let frame = match frame.into_trailers() {
                    Ok(mut trailers) => {
                        drop_bad_details(&mut trailers);
                        this.trailers(&trailers);
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                    Err(frame) => frame,
                };
                if let (Some(sizes), Some(data)) = (&mut this.sizes, frame.data_ref())
                    && let Err(size) = sizes.check(data)
                {
                    let message = format!(
                        "the response has a message of {size} bytes, which is more than its method allows"
                    );
                    let fault = of_code(Code::ResourceExhausted).permanent();
                    let attempts = this.record.attempts();
                    return this.fail(CallFailure::status(
                        Code::ResourceExhausted,
                        message,
                        fault,
                        attempts,
                        None,
                    ));
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(status))) => {
                let status = this.broken(status);
                this.fail(status)
            }
            Poll::Ready(None) => {
                this.end(Code::Unknown);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(deadline) = &mut this.deadline else { return Poll::Pending };
                std::task::ready!(deadline.as_mut().poll(cx));
                let attempts = this.record.attempts();
                this.fail(deadline_exceeded(
                    "the deadline passed before the response was complete".to_owned(),
                    attempts,
                ))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
