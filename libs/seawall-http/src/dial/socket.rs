//! Connections for other protocols than HTTP, under the same rules.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::host::Host;
#[cfg(feature = "tls")]
use crate::{
    dial::{Connector, Tls},
    error::{Cause, HttpError},
};

/// A connection that speaks another protocol than HTTP, such as that of mail. It was opened by the same code as all others: to
/// an address that the egress rules allow, and that nobody has resolved again.
pub struct Socket {
    io: Io,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS asks for it"))]
    host: Host,
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS asks for it"))]
    limit: Duration,
    #[cfg(feature = "tls")]
    tls: Connector,
}

enum Io {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Socket {
    pub(super) fn new(
        tcp: TcpStream,
        host: Host,
        limit: Duration,
        #[cfg(feature = "tls")] tls: Connector,
    ) -> Self {
        Socket {
            io: Io::Plain(tcp),
            host,
            limit,
            #[cfg(feature = "tls")]
            tls,
        }
    }

    /// Whether it speaks TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        !matches!(self.io, Io::Plain(_))
    }

    /// Speaks TLS from now on, with whoever the host's name was for. `tls` says whom to believe; without it that is said by the
    /// client. One that speaks it already is left as it is.
    #[cfg(feature = "tls")]
    pub async fn secure(self, tls: Option<&Tls>) -> Result<Self, HttpError> {
        let Socket { io, host, limit, tls: usual } = self;
        let Io::Plain(tcp) = io else { return Ok(Socket { io, host, limit, tls: usual }) };
        let connector = match tls {
            Some(tls) => tls.clone().connector().map_err(|error| Cause::Tls(io::Error::other(error)))?,
            None => usual.clone(),
        };
        let connector = connector.without_protocols();
        let secured = tokio::time::timeout(limit, connector.handshake(&host, tcp)).await;
        let secured = secured.unwrap_or_else(|_| Err(Cause::ConnectTimeout(limit).into()))?;
        Ok(Socket { io: Io::Tls(Box::new(secured)), host, limit, tls: usual })
    }
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

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(cx))
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("is_secure", &self.is_secure()).finish_non_exhaustive()
    }
}
