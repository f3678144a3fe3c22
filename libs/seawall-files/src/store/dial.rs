//! Connections to stores on the network, plain or encrypted.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

use super::http::CONNECT_TIMEOUT;

/// Connects to the host of an address, with TLS where the address says so.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    pub(super) tls: Arc<ClientConfig>,
    pub(super) may_be_plain: bool,
}

impl Dialer {
    async fn dial(self, uri: Uri) -> io::Result<TokioIo<StoreStream>> {
        let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text);
        let is_plain = uri.scheme_str() == Some("http");
        if is_plain && !self.may_be_plain {
            return Err(invalid("the address is not encrypted; allow it with `allow_http`"));
        }
        let host = uri.host().ok_or_else(|| invalid("the address has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let tcp = TcpStream::connect((host, port)).await?;
        tcp.set_nodelay(true)?;
        if is_plain {
            return Ok(TokioIo::new(StoreStream::Plain(tcp)));
        }
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| invalid("the host is no name for TLS"))?;
        let tls = TlsConnector::from(self.tls).connect(name, tcp).await?;
        Ok(TokioIo::new(StoreStream::Tls(Box::new(tls))))
    }
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<StoreStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<StoreStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
            timeout(CONNECT_TIMEOUT, dialer.dial(uri)).await.unwrap_or_else(late)
        })
    }
}

/// A connection to a store.
pub(super) enum StoreStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for StoreStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for StoreStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            StoreStream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            StoreStream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for StoreStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            StoreStream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            StoreStream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            StoreStream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            StoreStream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            StoreStream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            StoreStream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
