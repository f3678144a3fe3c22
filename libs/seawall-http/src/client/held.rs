//! Answers that are passed on while they come, with a call that lasts as long as they do.
//!
//! # Why not [`open`](HttpClient::open)?
//! There the call is over with the headers. A proxy that did so would have a thousand downloads under way in a bulkhead for
//! twenty, and a peer that breaks off every answer would have a spotless circuit. Here the operation of the guard is the whole
//! exchange: whoever reads the body polls the call, and the call's operation hands out one piece at a time.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use seawall::{Attempt, Classify, Deadline, Error, Fault, Guard};

use super::exchange::{Resend, Via};
use super::wire::{FOR_A_BODY, Wire};
use super::{HttpClient, terms};
use crate::error::{Cause, HttpError};
use crate::request::Request;
use crate::response::{BodyStream, Head, time_left};

/// An answer that is a fault may be tried again, so nobody sees it before that is decided. So much of its body is read within
/// the call; the rest of a longer one comes after it.
const FAULTY_BYTES: usize = 64 * 1024;

/// What somebody further out has said about a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds {
    /// When it must be over.
    pub deadline: Option<Deadline>,
    /// How deep in retries the caller is already.
    pub retries_above: Option<u32>,
}

impl HttpClient {
    /// As [`open`](HttpClient::open), but the call lasts until the body has ended or is dropped: so long it has its place in the
    /// bulkhead, its deadline holds, and an answer that breaks off counts against the circuit. A body that is dropped halfway is
    /// no fault of the peer.
    ///
    /// Nothing is tried again once the headers of a good answer have come.
    pub async fn hold(
        &self,
        guard: &Guard,
        request: Request,
        bounds: Bounds,
    ) -> Result<Held, Error<HttpError>> {
        let pipe = Arc::new(Pipe::default());
        let (client, guard, inner) = (self.clone(), guard.clone(), pipe.clone());
        let mut call: Calling = Box::pin(async move {
            let mut terms = terms(&guard, &request).classify(AtTheEnd);
            if let Some(deadline) = bounds.deadline {
                terms = terms.deadline(deadline);
            }
            if let Some(depth) = bounds.retries_above {
                terms = terms.retries_above(depth);
            }
            terms.call(|attempt| client.piped(&request, attempt, &inner)).await
        });
        let ended = poll_fn(|cx| match call.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if pipe.lock().begun.is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let ended = ended.await.transpose()?;
        let mut state = pipe.lock();
        let (begun, frame) = (state.begun.take(), state.frame.take());
        drop(state);
        Ok(match (ended, begun) {
            (Some(Ended::Faulty(faulty)), _) => {
                let Faulty { head, first, rest, deadline } = *faulty;
                let first = (!first.is_empty()).then(|| Frame::data(first));
                Held { head, deadline, body: HeldBody { first, rest: Rest::After(rest) } }
            }
            (Some(Ended::Passed), Some(Begun { head, deadline, .. })) => {
                Held { head, deadline, body: HeldBody { first: frame, rest: Rest::Over } }
            }
            (None, Some(Begun { head, deadline, hint })) => {
                let rest = Passing { call, pipe, hint };
                Held { head, deadline, body: HeldBody { first: frame, rest: Rest::Passing(rest) } }
            }
            (_, None) => unreachable!("what has passed has begun, and nothing else ends the wait"),
        })
    }

    /// One attempt: the headers, and then the body piece by piece, as somebody takes it.
    async fn piped(&self, request: &Request, attempt: Attempt, pipe: &Pipe) -> Result<Ended, HttpError> {
        let began = self.inner.clock.precise();
        // With HTTP/2 many share one connection, and none of them can drive it.
        let shared = cfg!(feature = "http2") && request.uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let mut via = if shared { Via::Pool } else { Via::Own(None) };
        let (head, body) = self.headers(request, Some(attempt), Resend::Once, began, &mut via).await?;
        let wire = if let Via::Own(wire) = via { wire } else { None };
        let mut body = Driven { wire, body, client: self, uri: &request.uri };
        let deadline = attempt.deadline();
        if head.fault().is_some() {
            let (first, is_whole) = beginning(&mut body).await?;
            let rest = if is_whole {
                body.give_back();
                None
            } else {
                Some(body.into_rest(time_left(deadline, &self.inner.clock)))
            };
            return Ok(Ended::Faulty(Box::new(Faulty { head, first, rest, deadline })));
        }
        pipe.lock().begun = Some(Begun { head, deadline, hint: body.body.size_hint() });
        poll_fn(|cx| {
            let mut state = pipe.lock();
            if state.unwanted {
                return Poll::Ready(Err(Cause::Unwanted.into()));
            }
            if state.frame.is_some() {
                return Poll::Pending;
            }
            // Asked here and not only by the guard's timer, because whoever has seen the headers must not see a second answer.
            if deadline.is_some_and(|deadline| deadline.remaining_on(&self.inner.clock).is_zero()) {
                return Poll::Ready(Err(HttpError::new(Cause::Late, Fault::timeout().permanent())));
            }
            let Some(frame) = ready!(body.poll_frame(cx)) else {
                return Poll::Ready(Ok(Ended::Passed));
            };
            let frame = frame.map_err(|broken| {
                let fault = broken.fault().permanent();
                broken.with(fault)
            })?;
            state.frame = Some(frame);
            // Whoever takes it asks for the next one.
            if body.body.is_end_stream() { Poll::Ready(Ok(Ended::Passed)) } else { Poll::Pending }
        })
        .await?;
        body.give_back();
        Ok(Ended::Passed)
    }
}

/// The body of an answer, and the connection that it comes through if nobody else drives that.
struct Driven<'a> {
    wire: Option<Wire>,
    body: Incoming,
    client: &'a HttpClient,
    uri: &'a http::Uri,
}

impl Driven<'_> {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let body = &mut self.body;
        let frame = match &mut self.wire {
            None => Pin::new(body).poll_frame(cx),
            Some(wire) => match wire.poll(FOR_A_BODY, cx, |cx| Pin::new(&mut *body).poll_frame(cx)) {
                Poll::Pending if wire.has_ended() => {
                    let broken = Cause::Body("the connection was closed".into());
                    return Poll::Ready(Some(Err(broken.into())));
                }
                frame => frame,
            },
        };
        frame.map_err(|error| Cause::Body(error.into()).into())
    }

    /// All of it was read: the connection is free for another request.
    fn give_back(self) {
        if let Some(wire) = self.wire {
            self.client.inner.wires.put(self.uri, wire);
        }
    }

    /// What is left of it, for whoever reads it after the call.
    fn into_rest(self, left: Option<Duration>) -> BodyStream {
        BodyStream::new(self.body, u64::MAX, left).driven(self.wire)
    }
}

/// Reads the beginning of a body, and says whether that is all of it.
async fn beginning(body: &mut Driven<'_>) -> Result<(Bytes, bool), HttpError> {
    let mut first = Vec::new();
    while first.len() < FAULTY_BYTES {
        let frame = if body.body.is_end_stream() { None } else { poll_fn(|cx| body.poll_frame(cx)).await };
        let Some(frame) = frame else { return Ok((first.into(), true)) };
        if let Ok(data) = frame?.into_data() {
            first.extend_from_slice(&data);
        }
    }
    Ok((first.into(), false))
}

type Calling = Pin<Box<dyn Future<Output = Result<Ended, Error<HttpError>>> + Send>>;

/// Between the call and whoever reads. Both are polled by the same task.
#[derive(Default)]
struct Pipe(Mutex<State>);

#[derive(Default)]
struct State {
    begun: Option<Begun>,
    frame: Option<Frame<Bytes>>,
    /// Whoever read has gone.
    unwanted: bool,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Begun {
    head: Head,
    deadline: Option<Deadline>,
    hint: SizeHint,
}

/// How an attempt ended.
enum Ended {
    /// Its answer is a fault, and nobody has seen it.
    Faulty(Box<Faulty>),
    /// All of its answer was handed out.
    Passed,
}

struct Faulty {
    head: Head,
    first: Bytes,
    rest: Option<BodyStream>,
    deadline: Option<Deadline>,
}

/// Judges an answer that is a fault by its status, and one that was passed on as good.
struct AtTheEnd;

impl Classify<Ended, HttpError> for AtTheEnd {
    fn classify(&self, result: &Result<Ended, HttpError>) -> Option<Fault> {
        match result {
            Ok(Ended::Faulty(faulty)) => faulty.head.fault(),
            Ok(Ended::Passed) => None,
            Err(error) => Some(error.fault()),
        }
    }
}

/// An answer whose body is to be read, with a call that lasts until then.
pub struct Held {
    head: Head,
    deadline: Option<Deadline>,
    body: HeldBody,
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
    first: Option<Frame<Bytes>>,
    rest: Rest,
}

enum Rest {
    Over,
    Passing(Passing),
    After(Option<BodyStream>),
}

struct Passing {
    call: Calling,
    pipe: Arc<Pipe>,
    hint: SizeHint,
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
