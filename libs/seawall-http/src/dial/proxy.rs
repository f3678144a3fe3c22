//! Through a proxy, by asking it for a tunnel.

use std::fmt;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use http::uri::Scheme;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::auth::Secret;
use crate::error::{BadRequest, Cause, HttpError};
use crate::host::Host;

/// The answer of a proxy is at most this long: a status and a few headers.
const ANSWER_MAX: usize = 8 * 1024;

/// A proxy that every connection goes through, as a tunnel (`CONNECT`). Only what is set here is used, never what the
/// environment says.
///
/// The proxy is asked for the address that was resolved and checked here, so that the egress rules hold behind it too. The
/// proxy's own address has to be allowed by them as well.
#[derive(Clone)]
pub struct Proxy {
    pub(super) host: Host,
    pub(super) port: u16,
    credentials: Option<Secret>,
    pub(super) resolves: bool,
}

impl Proxy {
    /// The proxy at this URL, like `http://proxy.example:3128`.
    pub fn at(url: impl AsRef<str>) -> Result<Self, BadRequest> {
        let uri: Uri = url.as_ref().parse().map_err(|_| BadRequest::Url)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(BadRequest::Scheme);
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(BadRequest::User);
        }
        let host = uri.host().and_then(Host::parse).ok_or(BadRequest::Host)?;
        Ok(Proxy { host, port: uri.port_u16().unwrap_or(80), credentials: None, resolves: false })
    }

    /// Shows the proxy these credentials.
    #[must_use]
    pub fn basic(mut self, user: &str, password: &Secret) -> Self {
        let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
        self.credentials = Some(Secret::new(pair));
        self
    }

    /// Leaves names to the proxy, which then decides where they lead: for proxies that filter by name. Only addresses in
    /// URLs are still checked here.
    #[must_use]
    pub fn resolves_names(mut self) -> Self {
        self.resolves = true;
        self
    }

    /// Asks for a tunnel to `target`, which is an address with a port or a name with one.
    pub(super) async fn tunnel(&self, tcp: &mut TcpStream, target: &str) -> Result<(), HttpError> {
        let broken = |error: std::io::Error| Cause::Proxy(error.to_string().into());
        let mut ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(credentials) = &self.credentials {
            ask.push_str("Proxy-Authorization: Basic ");
            ask.push_str(credentials.expose());
            ask.push_str("\r\n");
        }
        ask.push_str("\r\n");
        tcp.write_all(ask.as_bytes()).await.map_err(broken)?;
        let answer = read_head(tcp).await.map_err(broken)?;
        // `HTTP/1.1 200 …`; everything behind the status is the proxy's to say.
        match answer.split(|byte| *byte == b' ').nth(1) {
            Some([b'2', _, _]) if answer.starts_with(b"HTTP/1.") => Ok(()),
            Some(status @ [_, _, _]) if status.iter().all(u8::is_ascii_digit) => {
                let status = String::from_utf8_lossy(status);
                Err(Cause::Proxy(format!("it answered {status}").into()).into())
            }
            _ => Err(Cause::Proxy("its answer is no HTTP".into()).into()),
        }
    }
}

/// Byte by byte, because what follows the empty line belongs to the tunnel. It is once per connection.
async fn read_head(tcp: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(128);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= ANSWER_MAX {
            return Err(std::io::Error::other("its answer is too long"));
        }
        head.push(tcp.read_u8().await?);
    }
    Ok(head)
}

/// How `CONNECT` writes a target.
pub(super) fn target(checked: Option<SocketAddr>, host: &Host, port: u16) -> String {
    match (checked, host) {
        (Some(address), _) => address.to_string(),
        (None, Host::Name(name)) => format!("{name}:{port}"),
        (None, Host::Address(ip)) => SocketAddr::new(*ip, port).to_string(),
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}
