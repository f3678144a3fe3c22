//! The one place that opens a socket: resolve, check every address, connect to one that was checked.

mod proxy;
mod resolve;
mod socket;
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use proxy::Proxy;
pub use resolve::{Resolve, Resolving};
pub(crate) use resolve::{Resolver, System};
pub use socket::Socket;
pub(crate) use stream::{Peer, Stream};
#[cfg(feature = "tls")]
pub(crate) use tls::Connector;
#[cfg(feature = "tls")]
pub use tls::{BadTls, Tls};

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use seawall::Clock;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::egress::Egress;
use crate::error::{BadRequest, Cause, HttpError};
use crate::host::Host;
use stream::Io;

/// A name with more addresses than this is called at the first of them. All of them are checked.
const ADDRESSES_MAX: usize = 8;

/// How long one of several addresses may take: most answer within a few round trips of the earth.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens connections for the pool. A handle.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<Dialing>);

pub(crate) struct Dialing {
    pub(crate) egress: Egress,
    pub(crate) resolver: Resolver,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) timeout: Duration,
    pub(crate) clock: Clock,
    #[cfg(feature = "tls")]
    pub(crate) tls: Connector,
}

impl Dialer {
    pub(crate) fn new(dialing: Dialing) -> Self {
        Dialer(Arc::new(dialing))
    }

    /// Opens a connection.
    pub(crate) async fn open(&self, uri: &Uri) -> Result<Stream, HttpError> {
        // A peer that answers nothing at all must not hold an attempt for as long as it may take in all.
        let limit = self.0.timeout;
        let dialed = tokio::time::timeout(limit, self.0.dial(uri)).await;
        dialed.unwrap_or_else(|_| Err(Cause::ConnectTimeout(limit).into()))
    }
}

impl Dialer {
    /// Whether the rules allow this host.
    pub(crate) async fn check(&self, host: &str, port: u16) -> Result<(), HttpError> {
        let host = Host::parse(host).ok_or(Cause::Request(BadRequest::Host))?;
        let limit = self.0.timeout;
        let checked = tokio::time::timeout(limit, self.0.checked(&host, port)).await;
        checked.unwrap_or_else(|_| Err(Cause::ConnectTimeout(limit).into())).map(drop)
    }

    /// Opens a connection for another protocol.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<Socket, HttpError> {
        let host = Host::parse(host).ok_or(Cause::Request(BadRequest::Host))?;
        let limit = self.0.timeout;
        let dialed = tokio::time::timeout(limit, self.0.tcp(&host, port)).await;
        let (tcp, _) = dialed.unwrap_or_else(|_| Err(Cause::ConnectTimeout(limit).into()))?;
        Ok(Socket::new(
            tcp,
            host,
            limit,
            #[cfg(feature = "tls")]
            self.0.tls.clone(),
        ))
    }
}

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { dialer.open(&uri).await })
    }
}

impl Dialing {
    async fn dial(&self, uri: &Uri) -> Result<Stream, HttpError> {
        let began = self.clock.precise();
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().and_then(Host::parse).ok_or(Cause::Request(BadRequest::Host))?;
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let (tcp, address) = self.tcp(&host, port).await?;
        let (io, is_h2) = if is_https { self.secure(&host, tcp).await? } else { (plain(tcp), false) };
        let peer = Peer::new(address, self.clock.precise().since(began));
        Ok(Stream::new(io, peer, is_h2))
    }

    async fn tcp(&self, host: &Host, port: u16) -> Result<(TcpStream, SocketAddr), HttpError> {
        match &self.proxy {
            None => connect(&self.checked(host, port).await?).await,
            Some(proxy) => self.through(proxy, host, port).await,
        }
    }

    /// The addresses of a host, if the rules allow every one of them. A name that leads to a public and to a private address
    /// is somebody's trick or somebody's mistake.
    async fn checked(&self, host: &Host, port: u16) -> Result<Vec<SocketAddr>, HttpError> {
        let addresses = match host {
            Host::Address(ip) => vec![*ip],
            Host::Name(name) => self.resolver.0.resolve(name).await.map_err(Cause::Name)?,
        };
        let mut addresses: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        for address in &addresses {
            self.egress.check(*address).map_err(Cause::Egress)?;
        }
        if addresses.is_empty() {
            return Err(
                Cause::Name(io::Error::new(io::ErrorKind::NotFound, "the name has no address")).into()
            );
        }
        addresses.truncate(ADDRESSES_MAX);
        Ok(addresses)
    }

    async fn through(
        &self,
        proxy: &Proxy,
        host: &Host,
        port: u16,
    ) -> Result<(TcpStream, SocketAddr), HttpError> {
        // Refused targets are refused before the proxy hears of them.
        let by_name = proxy.resolves && matches!(host, Host::Name(_));
        let checked = if by_name { None } else { self.checked(host, port).await?.first().copied() };
        let (mut tcp, address) = connect(&self.checked(&proxy.host, proxy.port).await?).await?;
        proxy.tunnel(&mut tcp, &proxy::target(checked, host, port)).await?;
        Ok((tcp, address))
    }

    #[cfg(feature = "tls")]
    async fn secure(&self, host: &Host, tcp: TcpStream) -> Result<(Io, bool), HttpError> {
        let stream = self.tls.handshake(host, tcp).await?;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Io::Tls(Box::new(TokioIo::new(stream))), is_h2))
    }

    #[cfg(not(feature = "tls"))]
    async fn secure(&self, _: &Host, _: TcpStream) -> Result<(Io, bool), HttpError> {
        Err(Cause::Request(BadRequest::NoTls).into())
    }
}

fn plain(tcp: TcpStream) -> Io {
    Io::Plain(TokioIo::new(tcp))
}

/// Connects to one of the addresses, each in turn. Those were checked, and nothing resolves a name again.
async fn connect(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), HttpError> {
    let mut last = None;
    for (at, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(address);
        // An address that does not answer leaves time for the next one; the last one has all that is left.
        let connected = if at + 1 == addresses.len() {
            connecting.await
        } else {
            let waited = tokio::time::timeout(PATIENCE, connecting).await;
            waited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        match connected {
            Ok(tcp) => {
                // A request is written in one go; waiting for more to send only makes it late.
                tcp.set_nodelay(true).map_err(|error| Cause::Connect(*address, error))?;
                return Ok((tcp, *address));
            }
            Err(error) => last = Some(Cause::Connect(*address, error)),
        }
    }
    Err(last.expect("there is at least one address").into())
}
