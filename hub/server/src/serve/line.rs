//! What is known of one connection, by those who serve it and those whose answer goes through it.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use seawall::Deadline;
use tokio::net::TcpStream;

/// An answer that is not over so long after its deadline is not going to be: its client does not read.
const GRACE: Duration = Duration::from_millis(500);

/// A connection.
#[derive(Debug)]
pub(crate) struct Line {
    /// Who is at the other end, as it is told to upstreams.
    pub(crate) peer: HeaderValue,
    /// When the answer under way has to be over.
    deadline: Mutex<Option<Deadline>>,
    aborted: AtomicBool,
}

impl Line {
    pub(super) fn new(peer: IpAddr) -> Arc<Self> {
        let peer = HeaderValue::try_from(peer.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
        Arc::new(Line { peer, deadline: Mutex::default(), aborted: AtomicBool::new(false) })
    }

    /// The answer under way has to be over then.
    pub(crate) fn expect_end_by(&self, deadline: Option<Deadline>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// How long the answer under way may still take, if one has a deadline.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.map(|deadline| deadline.remaining() + GRACE)
    }

    /// What was sent is not all there is: the connection ends with a reset, so that nobody takes it for the whole.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

/// The socket of a connection.
pub(super) struct LineIo {
    io: TokioIo<TcpStream>,
    line: Arc<Line>,
}

impl LineIo {
    pub(super) fn new(tcp: TcpStream, line: Arc<Line>) -> Self {
        LineIo { io: TokioIo::new(tcp), line }
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
        Pin::new(&mut self.get_mut().io).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
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
        Pin::new(&mut self.get_mut().io).poll_write_vectored(cx, bufs)
    }
}
