//! What is known of one connection, by those who serve it and those whose answer goes through it.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Sleep, Timer, Write};
use hyper_util::rt::TokioIo;
use seawall::Deadline;
use tokio::net::TcpStream;

/// An answer that is not over so long after its deadline is not going to be: its client does not read.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// A client that keeps us waiting has to take so much within the limit, or it is cut off.
const TAKEN_MIN: usize = 64 * 1024;
/// So much is written as one piece.
const SMALL: usize = 1024;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    /// Who is at the other end, as it is told to upstreams.
    pub(crate) peer: HeaderValue,
    pub(super) address: IpAddr,
    /// When the answer under way has to be over.
    deadline: Mutex<Option<Deadline>>,
    aborted: AtomicBool,
    /// Until when the headers of the next request have to come, if they are waited for.
    patience: Mutex<Option<Instant>>,
    is_patience_over: AtomicBool,
    /// Since when its client has taken too little, if it has.
    stalled: Mutex<Option<Instant>>,
}

impl Line {
    pub(super) fn new(address: IpAddr) -> Arc<Self> {
        let peer = HeaderValue::try_from(address.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
        Arc::new(Line {
            peer,
            address,
            deadline: Mutex::default(),
            aborted: AtomicBool::new(false),
            patience: Mutex::default(),
            is_patience_over: AtomicBool::new(false),
            stalled: Mutex::default(),
        })
    }

    /// The answer under way has to be over then.
    pub(crate) fn expect_end_by(&self, deadline: Option<Deadline>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// When the answer under way has to be over, if one has a deadline.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when the headers of the next request have to come, if they are waited for.
    pub(super) fn patience(&self) -> Option<Instant> {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_until(&self, patience: Option<Instant>) {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    /// Since when its client has taken too little of what there is for it, if it has.
    pub(super) fn stalled(&self) -> Option<Instant> {
        *self.stalled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stall(&self, since: Option<Instant>) {
        *self.stalled.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// They have not come.
    pub(super) fn end_patience(&self) {
        self.is_patience_over.store(true, Ordering::Relaxed);
    }

    /// What was sent is not all there is: the connection ends with a reset, so that nobody takes it for the whole.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

/// Hyper's clock for the headers of requests. It wants a timer for each of them; here they are times that are written down, and
/// whoever drives the connection has one timer for all.
#[derive(Clone, Debug)]
pub(super) struct Patience(pub(super) Arc<Line>);

impl Timer for Patience {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.wait_until(Some(deadline));
        Box::pin(Waiting(self.0.clone()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        // The old one goes first, and takes its time with it.
        *sleep = Box::pin(Nobody);
        *sleep = self.sleep_until(deadline);
    }
}

struct Nobody;

impl Sleep for Nobody {}

impl Future for Nobody {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

struct Waiting(Arc<Line>);

impl Sleep for Waiting {}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.is_patience_over.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.wait_until(None);
    }
}

/// The socket of a connection.
pub(super) struct LineIo {
    io: TokioIo<TcpStream>,
    line: Arc<Line>,
    /// So much its client still has to take, if it keeps us waiting. Zero while it does not, so that this costs nothing then.
    untaken: usize,
}

impl LineIo {
    pub(super) fn new(tcp: TcpStream, line: Arc<Line>) -> Self {
        LineIo { io: TokioIo::new(tcp), line, untaken: 0 }
    }

    /// Writes down since when a client takes nothing. One that takes a byte now and then is no better: it is waited for until it
    /// has taken [`TAKEN_MIN`], or all that there is.
    fn written(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Pending if self.untaken == 0 => {
                self.untaken = TAKEN_MIN;
                self.line.stall(Some(Patience(self.line.clone()).now()));
            }
            Poll::Ready(Ok(taken)) if self.untaken > 0 => {
                self.untaken = self.untaken.saturating_sub(*taken);
                if self.untaken == 0 {
                    self.line.stall(None);
                }
            }
            _ => {}
        }
        polled
    }
}

impl Drop for LineIo {
    fn drop(&mut self) {
        if self.line.aborted.load(Ordering::Relaxed) {
            // An answer without a length ends with its connection: only a reset says that this was not the end.
            let _ = self.io.inner().set_zero_linger();
        }
    }
}

impl Read for LineIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl Write for LineIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.io).poll_write(cx, buf);
        this.written(polled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.untaken > 0 {
            // Whoever flushes has written all that there is.
            this.untaken = 0;
            this.line.stall(None);
        }
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.line.aborted.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let io = Pin::new(&mut this.io);
        let polled = match gathered(bufs, &mut [0; SMALL]) {
            Some(one) => io.poll_write(cx, one),
            None => io.poll_write_vectored(cx, bufs),
        };
        this.written(polled)
    }
}

/// Small pieces become one: the kernel takes one buffer faster than a list of them.
fn gathered<'a>(bufs: &'a [io::IoSlice<'_>], room: &'a mut [u8; SMALL]) -> Option<&'a [u8]> {
    if let [one] = bufs {
        return Some(one);
    }
    let mut end = 0;
    for buf in bufs {
        room.get_mut(end..end + buf.len())?.copy_from_slice(buf);
        end += buf.len();
    }
    Some(&room[..end])
}
