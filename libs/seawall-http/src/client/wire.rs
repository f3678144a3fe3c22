//! Connections that are driven by whoever uses them.
//!
//! # Why not the pool?
//! There every connection is a task, and a request, its answer and each piece of a body are handed from one task to another. For
//! a proxy that is as much work as all the rest. Here the task that waits for an answer drives the connection itself: what is
//! read from the socket is in its hand at once.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::header::{HOST, HeaderValue};
use http::uri::{Authority, Scheme};
use http::{Request, Uri};
use hyper::client::conn::http1::{self, SendRequest};
use seawall::{Clock, Tick};

use super::reply::Reply;
use crate::body::Outgoing;
use crate::dial::{Dialer, Stream};
use crate::error::{BadRequest, BoxError, Cause, HttpError};

/// A body is read when somebody has asked for it: one turn to hear of that, and one to read.
pub(crate) const FOR_A_BODY: u32 = 2;

/// Connections that nobody uses.
pub(crate) struct Wires {
    idle: Mutex<HashMap<Place, Vec<(Tick, Wire)>>>,
    clock: Clock,
    per_host: usize,
    timeout: Duration,
    buffer_bytes: usize,
}

/// Where a connection leads.
type Place = (Scheme, Authority);

/// A connection, driven by whoever uses it.
pub(crate) struct Wire {
    sender: SendRequest<Outgoing>,
    connection: Pin<Box<http1::Connection<Stream, Outgoing>>>,
    /// It has ended, and is not to be polled any more.
    ended: bool,
    is_fresh: bool,
    /// What it calls the peer.
    host: HeaderValue,
}

impl Wires {
    pub(super) fn new(clock: Clock, per_host: usize, timeout: Duration, buffer_bytes: usize) -> Self {
        Wires { idle: Mutex::default(), clock, per_host, timeout, buffer_bytes }
    }

    /// One that is idle and alive, or a new one.
    pub(super) async fn take(&self, uri: &Uri, dialer: &Dialer) -> Result<Wire, HttpError> {
        let place = place(uri)?;
        while let Some((since, mut wire)) = self.pop(&place) {
            if self.clock.precise().since(since) < self.timeout && wire.is_ready() {
                return Ok(wire);
            }
        }
        // In a box, because most requests find a connection and should not carry the room for opening one.
        let stream = Box::pin(dialer.open(uri)).await?;
        let broken = |error: hyper::Error| HttpError::from(Cause::NotWritten(error.into()));
        let handshake = http1::Builder::new().max_buf_size(self.buffer_bytes).handshake(stream);
        let (sender, connection) = handshake.await.map_err(broken)?;
        let host = host(uri)?;
        Ok(Wire { sender, connection: Box::pin(connection), ended: false, is_fresh: true, host })
    }

    /// Keeps a connection whose last answer has been read. Whether it can be used again is asked when it is to be used, and now and
    /// then: asked now, it would want another buffer to read into, because the one that it has holds the answer that is still to be
    /// passed on.
    pub(super) fn put(&self, uri: &Uri, mut wire: Wire) {
        if wire.ended {
            return;
        }
        wire.is_fresh = false;
        let Ok(place) = place(uri) else { return };
        let now = self.clock.precise();
        let mut idle = self.lock();
        let of_host = idle.entry(place).or_default();
        if of_host.len() < self.per_host {
            of_host.push((now, wire));
        }
    }

    fn pop(&self, place: &Place) -> Option<(Tick, Wire)> {
        self.lock().get_mut(place)?.pop()
    }

    /// Closes what was idle for too long.
    pub(super) fn sweep(&self) {
        let now = self.clock.precise();
        self.lock().retain(|_, of_host| {
            of_host.retain_mut(|(since, wire)| now.since(*since) < self.timeout && wire.is_ready());
            !of_host.is_empty()
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Vec<(Tick, Wire)>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(uri: &Uri) -> Result<Place, HttpError> {
    let both = uri.scheme().cloned().zip(uri.authority().cloned());
    both.ok_or_else(|| Cause::Request(BadRequest::Url).into())
}

/// As the header has it: without a port that is the usual one.
fn host(uri: &Uri) -> Result<HeaderValue, HttpError> {
    let usual = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let name = uri.host().unwrap_or_default();
    let host = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
        None => HeaderValue::try_from(name),
    };
    host.map_err(|_| Cause::Request(BadRequest::Host).into())
}

fn path_only(uri: &Uri) -> Uri {
    uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from)
}

impl Wire {
    /// Sends a request and waits for the headers of its answer.
    pub(super) async fn send(&mut self, mut request: Request<Outgoing>) -> Reply {
        request.headers_mut().entry(HOST).or_insert_with(|| self.host.clone());
        *request.uri_mut() = path_only(request.uri());
        let mut answer = pin!(self.sender.try_send_request(request));
        let sent = poll_fn(|cx| match self.poll(1, cx, |cx| answer.as_mut().poll(cx)) {
            Poll::Ready(sent) => Poll::Ready(Some(sent)),
            Poll::Pending if self.ended => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match sent.await {
            Some(Ok(answer)) => Reply::Answer(answer),
            Some(Err(mut error)) => {
                let unwritten = error.take_message().is_some();
                let error: BoxError = error.into_error().into();
                match (unwritten, self.is_fresh) {
                    (true, false) => Reply::Stale(Cause::NotWritten(error).into()),
                    (true, true) => Reply::Failed(Cause::NotWritten(error).into()),
                    (false, _) => Reply::Failed(Cause::Exchange(error).into()),
                }
            }
            None => Reply::Failed(Cause::Exchange("the connection was closed".into()).into()),
        }
    }

    /// Lets the connection do what it can, and looks whether `step` is done then. What is pending when the connection
    /// [has ended](Wire::has_ended) stays so.
    pub(crate) fn poll<T>(
        &mut self,
        quietly: u32,
        cx: &mut Context<'_>,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // The connection and who waits for it wake each other, and both are polled here: a waker of ours would have the task
        // polled once more for nothing. So it is first driven quietly, as often as may help.
        let mut quiet = Context::from_waker(Waker::noop());
        for _ in 0..quietly {
            self.turn(&mut quiet);
            if let Poll::Ready(done) = step(&mut quiet) {
                return Poll::Ready(done);
            }
        }
        // Now it is up to the socket, and that wakes whoever looked last.
        self.turn(cx);
        step(&mut quiet)
    }

    fn turn(&mut self, cx: &mut Context<'_>) {
        self.ended = self.ended || self.connection.as_mut().poll(cx).is_ready();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether it takes another request. Nobody is woken for it: it is asked when it is to be used.
    pub(super) fn is_ready(&mut self) -> bool {
        self.turn(&mut Context::from_waker(Waker::noop()));
        !self.ended && self.sender.is_ready()
    }
}
