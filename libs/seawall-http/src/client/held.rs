//! Answers that are passed on while they come, with a call that lasts as long as they do.
//!
//! # Why not [`open`](HttpClient::open)?
//! There the call is over with the headers. A proxy that did so would have a thousand downloads under way in a bulkhead for
//! twenty, and a peer that breaks off every answer would have a spotless circuit. Here the operation of the guard is the whole
//! exchange: whoever reads the body polls the call, and the call's operation hands out one piece at a time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use seawall::{Attempt, Classify, Deadline, Error, Fault, Guard};

use super::exchange::{Resend, Via};
use super::passing::{Held, HeldBody, Passing, Rest};
use super::wire::{FOR_A_BODY, Wire};
use super::{HttpClient, terms};
use crate::error::{Cause, HttpError};
use crate::header;
use crate::observe::ObservedAttempt;
use crate::request::Request;
use crate::response::{BodyStream, Head, time_left};

/// An answer that is a fault may be tried again, so nobody sees it before that is decided. So much of its body is read within
/// the call; the rest of a longer one comes after it.
const FAULTY_BYTES: usize = 64 * 1024;

/// What somebody further out has said about a call.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
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

    /// One attempt, told to whoever wants to know.
    async fn piped(&self, request: &Request, attempt: Attempt, pipe: &Pipe) -> Result<Ended, HttpError> {
        let mut told = request.observer.as_ref().map(|observer| observer.start(attempt));
        let ended = self.pass(request, attempt, pipe, &mut told).await;
        if let Some(told) = told {
            told.ended(ended.as_ref().err());
        }
        ended
    }

    /// One attempt: the headers, and then the body piece by piece, as somebody takes it.
    async fn pass(
        &self,
        request: &Request,
        attempt: Attempt,
        pipe: &Pipe,
        told: &mut Option<Box<dyn ObservedAttempt>>,
    ) -> Result<Ended, HttpError> {
        let (began, deadline) = (self.inner.clock.precise(), attempt.deadline());
        // With HTTP/2 many share one connection, and none of them can drive it.
        let shared = cfg!(feature = "http2") && request.uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let mut via = if shared { Via::Pool } else { Via::Own(None) };
        let (head, body) = {
            let mut headers = pin!(self.headers(request, Some(attempt), Resend::Once, began, &mut via));
            poll_fn(|cx| match headers.as_mut().poll(cx) {
                Poll::Pending if self.is_stalled(request, deadline) => {
                    Poll::Ready(Err(Cause::Stalled.into()))
                }
                polled => polled,
            })
            .await?
        };
        if let Some(told) = told {
            told.answered(head.status);
        }
        let wire = if let Via::Own(wire) = via { wire } else { None };
        let may_stay = request.is_replayable() && !header::closes(&head.headers);
        let mut body = Driven { wire, may_stay, body, client: self, uri: &request.uri };
        if head.fault().is_some() {
            let (first, is_whole) = beginning(&mut body).await?;
            let rest = if is_whole {
                body.give_back();
                None
            } else {
                Some(body.into_rest(time_left(deadline)))
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
            if self.is_stalled(request, deadline) {
                return Poll::Ready(Err(Cause::Stalled.into()));
            }
            if self.is_past(deadline) {
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

    fn is_past(&self, deadline: Option<Deadline>) -> bool {
        deadline.is_some_and(|deadline| deadline.remaining().is_zero())
    }

    /// Whether the time is over while the body of the request is waited for. Whoever makes it is to blame then, and the peer is
    /// not: one client that uploads slowly would open the circuit for all.
    fn is_stalled(&self, request: &Request, deadline: Option<Deadline>) -> bool {
        request.body.is_awaited() && self.is_past(deadline)
    }
}

/// The body of an answer, and the connection that it comes through if nobody else drives that.
struct Driven<'a> {
    wire: Option<Wire>,
    /// Neither does the peer want to close it, nor may an upload be under way that nobody will go on with.
    may_stay: bool,
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
        if let Some(mut wire) = self.wire
            && (self.may_stay || wire.is_ready())
        {
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

pub(super) type Calling = Pin<Box<dyn Future<Output = Result<Ended, Error<HttpError>>> + Send>>;

/// Between the call and whoever reads. Both are polled by the same task.
#[derive(Default)]
pub(super) struct Pipe(Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    begun: Option<Begun>,
    pub(super) frame: Option<Frame<Bytes>>,
    /// Whoever read has gone.
    pub(super) unwanted: bool,
}

impl Pipe {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Begun {
    head: Head,
    deadline: Option<Deadline>,
    hint: SizeHint,
}

/// How an attempt ended.
pub(super) enum Ended {
    /// Its answer is a fault, and nobody has seen it.
    Faulty(Box<Faulty>),
    /// All of its answer was handed out.
    Passed,
}

pub(super) struct Faulty {
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
