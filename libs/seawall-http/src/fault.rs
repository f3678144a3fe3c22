//! The one place that says what an error of hyper, rustls or the kernel means.
//!
//! The question that matters is whether the request was served. Until a connection stands and its TLS handshake is over,
//! nothing was sent. From the first byte on nobody knows, whatever the error is called.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use hyper_util::client::legacy;
use seawall::client::HttpResponse;
use seawall::fault::{Code, parse_retry_after};
use seawall::{Clock, Fault, Ran};

use crate::body::SourceBroke;
use crate::error::{Cause, HttpError};
use crate::response::{Opened, Response};

impl From<Cause> for HttpError {
    fn from(cause: Cause) -> Self {
        let fault = match &cause {
            Cause::Request(_) => Fault::business().ran(Ran::No),
            // The same address will be refused again, and the peer has no part in it.
            Cause::Egress(_) => Fault::business().ran(Ran::No),
            Cause::Name(error) | Cause::Connect(_, error) | Cause::Tls(error) => of_dialing(error),
            Cause::ConnectTimeout(_) => Fault::timeout().ran(Ran::No),
            Cause::Proxy(_) | Cause::NotWritten(_) => Fault::unreachable(),
            Cause::Exchange(error) => of_exchange(&**error),
            // The status came, but a server may send it before its work is done.
            Cause::Body(error) => of_exchange(&**error),
            // It was served, and will be as large again. That one answer is large says nothing about the peer.
            Cause::TooLarge { .. } => Fault::business(),
            Cause::Late => Fault::timeout(),
            // The peer had no part in it.
            Cause::Unwanted | Cause::Stalled => Fault::business().ran(Ran::Unknown),
            Cause::Switched | Cause::Decode(_) => Fault::protocol().permanent(),
            Cause::Credentials(error) => of_credentials(&**error),
            Cause::Status(response) => response.fault().unwrap_or(Fault::business()),
        };
        HttpError::new(cause, fault)
    }
}

/// No name, no connection, no handshake: certainly not served, and it may pass. An expired certificate too: people repair it,
/// and what waits in a queue should live to see it.
fn of_dialing(error: &io::Error) -> Fault {
    Fault::unreachable().code(Code::Io(error.kind()))
}

/// Something broke with the request on its way. Whatever the kernel calls it, it may have been served.
fn of_exchange(error: &(dyn StdError + 'static)) -> Fault {
    if find::<SourceBroke>(error).is_some() {
        return Fault::business().ran(Ran::Unknown);
    }
    let Some(io) = find::<io::Error>(error) else {
        // No I/O error among the causes: closed before the answer was complete, or no HTTP.
        return Fault::io();
    };
    if refused_in_handshake(io) {
        return Fault::unreachable().code(Code::Io(io.kind()));
    }
    let fault = if io.kind() == io::ErrorKind::TimedOut { Fault::timeout() } else { Fault::io() };
    fault.code(Code::Io(io.kind()))
}

/// With TLS 1.3 a client is done with the handshake before the server has looked at its certificate. A server that refuses it
/// says so where the answer should be, and has not read the request.
#[cfg(feature = "tls")]
fn refused_in_handshake(error: &io::Error) -> bool {
    use rustls::AlertDescription as A;
    let alert = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        _ => return false,
    };
    matches!(
        alert,
        A::CertificateRequired
            | A::BadCertificate
            | A::UnsupportedCertificate
            | A::CertificateRevoked
            | A::CertificateExpired
            | A::CertificateUnknown
            | A::UnknownCA
            | A::AccessDenied
            | A::DecryptError
            | A::HandshakeFailure
    )
}

#[cfg(not(feature = "tls"))]
fn refused_in_handshake(_: &io::Error) -> bool {
    false
}

/// The request itself was never sent. Whether trying again helps is what became of the token's request.
fn of_credentials(error: &(dyn StdError + 'static)) -> Fault {
    let fault = find::<Fault>(error).copied().unwrap_or(Fault::system());
    fault.ran(Ran::No)
}

fn find<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    for _ in 0..16 {
        let error = next?;
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What the pool says about a request that got no answer.
pub(crate) fn of_pool(error: legacy::Error) -> HttpError {
    if let Some(dialing) = find::<HttpError>(&error) {
        return dialing.clone();
    }
    if error.is_connect() {
        return Cause::NotWritten(error.into()).into();
    }
    // Canceled means that no connection has taken the request.
    let canceled = find::<hyper::Error>(&error).is_some_and(hyper::Error::is_canceled);
    if canceled { Cause::NotWritten(error.into()).into() } else { Cause::Exchange(error.into()).into() }
}

/// What a status means, with the wait that was asked for.
pub(crate) fn of_status(status: StatusCode, wait: Option<Duration>, only_success: bool) -> Option<Fault> {
    let fault = match Fault::of_http(status.as_u16()) {
        // Redirects are not followed, so for who wants a success this is none.
        None if only_success && !status.is_success() => Fault::business().code(Code::Http(status.as_u16())),
        None => return None,
        Some(fault) => fault,
    };
    Some(wait.map_or(fault, |wait| fault.after(wait)))
}

/// The wait that an answer with this status asks for.
pub(crate) fn wait_asked(status: StatusCode, headers: &HeaderMap, clock: &Clock) -> Option<Duration> {
    if !matches!(status.as_u16(), 429 | 503) {
        return None;
    }
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, clock.wall())
}

/// An answer knows the wait that was asked for since it came, and what the request wanted of it.
impl HttpResponse for Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }
}

impl HttpResponse for Opened {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault()
    }
}
