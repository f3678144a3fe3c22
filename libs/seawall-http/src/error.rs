//! What can go wrong with one attempt.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use seawall::Fault;

use crate::egress::Refused;
use crate::response::Response;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why an attempt gave no answer, already judged: [`fault`](HttpError::fault) is its `source` too, so that every guard
/// understands it without being told how.
///
/// It never shows a secret, the query of a URL, or why the egress rules refused a target; that is in
/// [`cause`](HttpError::cause), for the operator.
#[derive(Clone)]
pub struct HttpError {
    inner: Arc<Inner>,
}

struct Inner {
    cause: Cause,
    fault: Fault,
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The request can't be sent as it stands.
    Request(BadRequest),
    /// The egress rules refuse the target.
    Egress(Refused),
    /// The name has no address, or nobody could say.
    Name(io::Error),
    /// No connection to this address.
    Connect(SocketAddr, io::Error),
    /// Name, connection and TLS together took longer than they may.
    ConnectTimeout(Duration),
    /// The TLS handshake failed.
    Tls(io::Error),
    /// The proxy did not let us through.
    Proxy(Box<str>),
    /// The connection broke, or what came was no HTTP, after the request was on its way.
    Exchange(BoxError),
    /// The connection was closed before the request was written.
    NotWritten(BoxError),
    /// The connection broke while the body of the answer was read.
    Body(BoxError),
    /// The body of the answer is larger than it may be.
    TooLarge {
        /// How many bytes it may have.
        limit: u64,
    },
    /// The body of the answer was not there when the time was over.
    Late,
    /// Whoever asked for the body does not want the rest of it.
    Unwanted,
    /// The body of the request, a stream, was waited for until the time was over.
    Stalled,
    /// The peer changed the protocol without being asked.
    Switched,
    /// There are no credentials: the token could not be fetched.
    Credentials(BoxError),
    /// The answer's status is a fault. See [`Response::good`].
    Status(Box<Response>),
    /// The body of the answer is not what it should be. See [`Response::json`].
    Decode(BoxError),
}

impl HttpError {
    pub(crate) fn new(cause: Cause, fault: Fault) -> Self {
        HttpError { inner: Arc::new(Inner { cause, fault }) }
    }

    /// The same, with another judgement.
    pub(crate) fn with(self, fault: Fault) -> Self {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => HttpError::new(inner.cause, fault),
            Err(inner) => HttpError { inner },
        }
    }

    /// An answer that came whole and can't be understood. Not retried, because the next one will read the same; counts against
    /// the peer.
    ///
    /// For what an operation does with the body of an answer: one error type then serves the exchange and the decoding.
    pub fn decode(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Cause::Decode(error.into()).into()
    }

    /// What it means: whether it may pass, and whether the request was served.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.inner.fault
    }

    /// What happened.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.inner.cause
    }

    /// The refused address and the rule, if the egress rules refused the target. For the operator's log.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refused> {
        match &self.inner.cause {
            Cause::Egress(refused) => Some(refused),
            _ => None,
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.cause {
            Cause::Request(bad) => write!(f, "the request can't be sent: {bad}"),
            Cause::Egress(_) => f.write_str("the egress rules refuse this target, nothing was sent"),
            Cause::Name(error) => write!(f, "the name can't be resolved: {error}"),
            Cause::Connect(address, error) => write!(f, "no connection to {address}: {error}"),
            Cause::ConnectTimeout(limit) => write!(f, "no connection within {limit:?}"),
            Cause::Tls(error) => write!(f, "the TLS handshake failed: {error}"),
            Cause::Proxy(why) => write!(f, "the proxy did not let us through: {why}"),
            Cause::Exchange(error) => write!(f, "the exchange broke: {}", Chain(&**error)),
            Cause::NotWritten(error) => write!(f, "the request was not written: {}", Chain(&**error)),
            Cause::Body(error) => write!(f, "the answer broke off: {}", Chain(&**error)),
            Cause::TooLarge { limit } => write!(f, "the answer is larger than {limit} bytes"),
            Cause::Late => f.write_str("the answer was not complete in time"),
            Cause::Unwanted => f.write_str("the rest of the answer was not wanted"),
            Cause::Stalled => f.write_str("the body of the request did not come in time"),
            Cause::Switched => f.write_str("the peer switched protocols without being asked"),
            Cause::Credentials(error) => write!(f, "no credentials: {error}"),
            Cause::Status(response) => write!(f, "the peer answered {}", response.status()),
            Cause::Decode(error) => write!(f, "the answer can't be decoded: {}", Chain(&**error)),
        }
    }
}

/// An error of a library with all its causes in one line: they say little one by one.
struct Chain<'a>(&'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        // A chain that never ends is a bug of its author, and must not be ours.
        for _ in 0..8 {
            let Some(error) = next else { break };
            write!(f, ": {error}")?;
            next = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpError")
            .field("cause", &self.inner.cause)
            .field("fault", &self.inner.fault)
            .finish()
    }
}

impl StdError for HttpError {
    /// The judged fault. What a library said stands in the text, because its own idea of what happened would be found
    /// first by whoever looks for a cause.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.inner.fault)
    }
}

impl From<BadRequest> for Cause {
    fn from(bad: BadRequest) -> Self {
        Cause::Request(bad)
    }
}

/// So that a request can be made where it is sent: `client.exchange(&request?, attempt)`.
impl From<BadRequest> for HttpError {
    fn from(bad: BadRequest) -> Self {
        Cause::Request(bad).into()
    }
}

/// Why a request can't be sent as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadRequest {
    /// The URL can't be read.
    Url,
    /// The URL is neither `http` nor `https`.
    Scheme,
    /// The URL is `https`, and this build has no TLS.
    NoTls,
    /// The URL carries a user or password.
    User,
    /// The host is neither a name nor an address.
    Host,
    /// The method is one for tunnels.
    Method,
    /// A header's name is none.
    HeaderName,
    /// A header's value has characters that no header may have.
    HeaderValue(HeaderName),
    /// A header that only the client itself may set.
    OurHeader(HeaderName),
    /// The body is a stream, and was sent already.
    BodyGone,
    /// The signature is over the body, and the body is a stream.
    BodyNotSigned,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRequest::Url => f.write_str("its URL can't be read"),
            BadRequest::Scheme => f.write_str("its URL is neither `http` nor `https`"),
            BadRequest::NoTls => f.write_str("its URL is `https`, and this build has no TLS (feature `tls`)"),
            BadRequest::User => f.write_str("its URL carries a user; use basic authentication"),
            BadRequest::Host => {
                f.write_str("its host is neither a name nor an address; write other scripts in punycode")
            }
            BadRequest::Method => f.write_str("its method is for tunnels"),
            BadRequest::HeaderName => f.write_str("a header's name has characters that no name may have"),
            BadRequest::HeaderValue(name) => {
                write!(f, "the value of header `{name}` has characters that no value may have")
            }
            BadRequest::OurHeader(name) => write!(f, "header `{name}` is made by the client itself"),
            BadRequest::BodyGone => f.write_str("its body is a stream that was sent already"),
            BadRequest::BodyNotSigned => f.write_str("its body is a stream, and a signature needs all of it"),
        }
    }
}

impl StdError for BadRequest {}
