//! Errors and responses of reqwest.

use http::{HeaderMap, StatusCode};

use super::hyper::{judge_pool, not_connected};
use super::{HttpResponse, find};
use crate::fault::{Fault, Ran};

/// What an error of reqwest means.
pub(super) fn judge(error: &::reqwest::Error) -> Fault {
    if let Some(status) = error.status() {
        // `error_for_status` keeps the status and not the headers: the wait that the peer asked for is lost.
        return Fault::of_status(status).unwrap_or(Fault::system());
    }
    if error.is_builder() {
        return Fault::business().ran(Ran::No);
    }
    if error.is_connect() {
        // A timeout of reqwest's own is no I/O error.
        let fault = not_connected(error);
        return if error.is_timeout() { Fault::timeout().ran(Ran::No) } else { fault };
    }
    // What broke the connection is asked first: a body that breaks off is a "decode error" to reqwest.
    if let Some(error) = find::<::hyper::Error>(error) {
        return super::hyper::judge(error);
    }
    if let Some(fault) = find::<Fault>(error) {
        return *fault;
    }
    if error.is_timeout() {
        return Fault::timeout();
    }
    if error.is_decode() || error.is_redirect() || error.is_upgrade() {
        // The peer answered, and the next response will read the same.
        return Fault::protocol().permanent();
    }
    find(error).map_or(Fault::io(), judge_pool)
}

impl HttpResponse for ::reqwest::Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}
