//! What is known of one connection, by those who serve it and those whose answer goes through it.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Sleep, Timer, Write};
use hyper_util::rt::TokioIo;
use seawall::Deadline;
use seawall_http::{GATHERED_MAX, gathered};
use seawall_hub_core::sync::Lock;
use tokio::net::TcpStream;

/// An answer that is not over so long after its deadline is not going to be: its client does not read.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// A client that keeps us waiting has to take so much within the limit, or it is cut off.
const TAKEN_MIN: usize = 64 * 1024;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// The limits of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionLimits {
    /// Who is at the other end, as it is told to upstreams.
    pub(crate) peer: HeaderValue,
    pub(super) address: IpAddr,
    /// When the answer under way has to be over.
    deadline: Lock<Option<Deadline>>,
    aborted: AtomicBool,
    /// Until when the headers of the next request have to come, if they are waited for.
    patience: Lock<Option<Instant>>,
    is_patience_over: AtomicBool,
    /// Since when its client has taken too little, if it has.
    stalled: Lock<Option<Instant>>,
}

impl ConnectionLimits {
    pub(super) fn new(address: IpAddr) -> Arc<Self> {
        let peer = HeaderValue::try_from(address.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
        Arc::new(ConnectionLimits {
            peer,
            address,
            deadline: Lock::default(),
            aborted: AtomicBool::new(false),
            patience: Lock::default(),
            is_patience_over: AtomicBool::new(false),
            stalled: Lock::default(),
        })
    }

    /// The answer under way has to be over then.
    pub(crate) fn expect_end_by(&self, deadline: Option<Deadline>) {
        *self.deadline.lock() = deadline;
    }

    /// When the answer under way has to be over, if one has a deadline.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        *self.deadline.lock()
    }

    /// Until when the headers of the next request have to come, if they are waited for.
    pub(super) fn patience(&self) -> Option<Instant> {
        *self.patience.lock()
    }

    fn wait_until(&self, patience: Option<Instant>) {
        *self.patience.lock() = patience;
    }

    /// Since when its client has taken too little of what there is for it, if it has.
    pub(super) fn stalled(&self) -> Option<Instant> {
        *self.stalled.lock()
    }

    fn stall(&self, since: Option<Instant>) {
        *self.stalled.lock() = since;
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
pub(super) struct ReadTimer(pub(super) Arc<ConnectionLimits>);

impl Timer for ReadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.wait_until(Some(deadline));
        Box::pin(TimerWait(self.0.clone()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        // The old one goes first, and takes its time with it.
        *sleep = Box::pin(NoTimer);
        *sleep = self.sleep_until(deadline);
    }
}

struct NoTimer;

impl Sleep for NoTimer {}

impl Future for NoTimer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

struct TimerWait(Arc<ConnectionLimits>);

impl Sleep for TimerWait {}

impl Future for TimerWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.is_patience_over.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for TimerWait {
    fn drop(&mut self) {
        self.0.wait_until(None);
    }
}

/// The socket of a connection.
pub(super) struct LimitedSocket {
    io: TokioIo<TcpStream>,
    line: Arc<ConnectionLimits>,
    /// The number of bytes that the client still has to read, while it keeps the hub waiting. It is zero otherwise, so that this
    /// costs nothing then.
    untaken: usize,
}

impl LimitedSocket {
    pub(super) fn new(tcp: TcpStream, line: Arc<ConnectionLimits>) -> Self {
        LimitedSocket { io: TokioIo::new(tcp), line, untaken: 0 }
    }

    /// Writes down since when a client takes nothing. One that takes a byte now and then is no better: it is waited for until it
    /// has taken [`TAKEN_MIN`], or all that there is.
    fn written(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Pending if self.untaken == 0 => {
                self.untaken = TAKEN_MIN;
                self.line.stall(Some(ReadTimer(self.line.clone()).now()));
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

impl Drop for LimitedSocket {
    fn drop(&mut self) {
        if self.line.aborted.load(Ordering::Relaxed) {
            // An answer without a length ends with its connection: only a reset says that this was not the end.
            let _ = self.io.inner().set_zero_linger();
        }
    }
}

impl Read for LimitedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl Write for LimitedSocket {
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
        let polled = match gathered(bufs, &mut [0; GATHERED_MAX]) {
            Some(one) => io.poll_write(cx, one),
            None => io.poll_write_vectored(cx, bufs),
        };
        this.written(polled)
    }
}
