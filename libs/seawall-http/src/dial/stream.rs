//! A connection, with or without TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::gather::{GATHERED_MAX, gathered};

/// What is known about a connection; the pool puts it beside every answer that came through it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    took: Duration,
    life: Arc<Life>,
}

#[derive(Debug)]
struct Life {
    used: AtomicBool,
    /// Has no permits, and is closed when the socket is.
    gone: Semaphore,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr, took: Duration) -> Self {
        let life = Life { used: AtomicBool::new(false), gone: Semaphore::new(0) };
        Peer { address, took, life: Arc::new(life) }
    }

    /// How long connecting took, for the first request on the connection.
    pub(crate) fn took(&self) -> Option<Duration> {
        // Most requests are not the first, and a look costs less than a swap.
        (!self.was_used() && !self.life.used.swap(true, Ordering::Relaxed)).then_some(self.took)
    }

    /// Whether an answer has come through it.
    pub(crate) fn was_used(&self) -> bool {
        self.life.used.load(Ordering::Relaxed)
    }

    /// Waits until the socket is closed.
    pub(crate) async fn gone(&self) {
        drop(self.life.gone.acquire().await);
    }
}

/// Tells who waits that the socket is gone. The last field of a [`Stream`], so dropped after the socket.
pub(super) struct Alive(Arc<Life>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.gone.close();
    }
}

impl Stream {
    pub(super) fn new(io: Io, peer: Peer, is_h2: bool) -> Self {
        let alive = Alive(peer.life.clone());
        Stream { io, peer, is_h2, _alive: alive }
    }
}

pub(crate) struct Stream {
    io: Io,
    peer: Peer,
    is_h2: bool,
    _alive: Alive,
}

pub(super) enum Io {
    Plain(TokioIo<TcpStream>),
    #[cfg(feature = "tls")]
    Tls(Box<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>>),
}

macro_rules! either {
    ($self:expr, $io:ident => $call:expr) => {
        match &mut $self.get_mut().io {
            Io::Plain($io) => {
                let $io = Pin::new($io);
                $call
            }
            #[cfg(feature = "tls")]
            Io::Tls($io) => {
                let $io = Pin::new(&mut **$io);
                $call
            }
        }
    };
}

impl Read for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read(cx, buf))
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.io {
            Io::Plain(io) => io.is_write_vectored(),
            #[cfg(feature = "tls")]
            Io::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match gathered(bufs, &mut [0; GATHERED_MAX]) {
            Some(one) => either!(self, io => io.poll_write(cx, one)),
            None => either!(self, io => io.poll_write_vectored(cx, bufs)),
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.peer.clone());
        if self.is_h2 { connected.negotiated_h2() } else { connected }
    }
}
