//! Errors of hyper and of hyper-util's pooled client.
//!
//! The question that matters is whether the request was served. Until a connection has taken it, nothing was sent. From
//! the first byte on nobody knows, whatever the error is called.

use std::io;

use super::find;
use crate::fault::{Code, Fault, Ran};

/// What an error on a connection means.
pub(super) fn judge(error: &::hyper::Error) -> Fault {
    let carried = find::<Fault>(error).copied();
    if error.is_user() {
        // The body that we send broke off, or our own connection task is gone: the peer has no part in it, and may have
        // acted on what it got.
        return carried.unwrap_or(Fault::business()).ran(Ran::Unknown);
    }
    if let Some(fault) = carried {
        return fault;
    }
    let io = find::<io::Error>(error).map(io::Error::kind);
    let fault = if error.is_canceled() || error.is_closed() {
        // No connection has taken the request.
        Fault::unreachable()
    } else if error.is_timeout() || io == Some(io::ErrorKind::TimedOut) {
        Fault::timeout()
    } else {
        // Reset, closed before the response was complete, or no HTTP.
        Fault::io()
    };
    with_kind(fault, io)
}

/// What an error of the pooled client means.
#[cfg(feature = "hyper-util")]
pub(super) fn judge_pool(error: &hyper_util::client::legacy::Error) -> Fault {
    if error.is_connect() {
        return not_connected(error);
    }
    match find::<::hyper::Error>(error) {
        Some(error) => judge(error),
        // The client refused the request as it stands: no absolute URI, or a method or version that it does not know.
        None => Fault::business().ran(Ran::No),
    }
}

/// No name, no connection, no handshake: certainly not served.
#[cfg(feature = "hyper-util")]
pub(super) fn not_connected(error: &(dyn std::error::Error + 'static)) -> Fault {
    if let Some(fault) = find::<Fault>(error) {
        return fault.ran(Ran::No);
    }
    let io = find::<io::Error>(error).map(io::Error::kind);
    let timed_out = io == Some(io::ErrorKind::TimedOut);
    let fault = if timed_out { Fault::timeout().ran(Ran::No) } else { Fault::unreachable() };
    with_kind(fault, io)
}

fn with_kind(fault: Fault, kind: Option<io::ErrorKind>) -> Fault {
    kind.map_or(fault, |kind| fault.code(Code::Io(kind)))
}
