//! Headers: which may be set from outside, and which tell a server about the call that it is part of.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};

/// Milliseconds that are left of the caller's time.
pub static SEAWALL_DEADLINE: HeaderName = HeaderName::from_static("seawall-deadline");
/// How deep in retries the request is: 0 where nothing has been retried.
pub static SEAWALL_ATTEMPT: HeaderName = HeaderName::from_static("seawall-attempt");
/// The same for all attempts of a call, so that the server does the work once.
pub static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much time the caller still has, by its headers. For servers: give it to
/// [`Deadline::within`](seawall::Deadline::within).
#[must_use]
pub fn time_left(headers: &HeaderMap) -> Option<Duration> {
    number(headers, &SEAWALL_DEADLINE).map(Duration::from_millis)
}

/// How deep in retries the caller is, by its headers. For servers: give it to
/// [`retries_above`](seawall::CallBuilder::retries_above).
#[must_use]
pub fn retry_depth(headers: &HeaderMap) -> Option<u32> {
    number(headers, &SEAWALL_ATTEMPT).map(|depth| u32::try_from(depth).unwrap_or(u32::MAX))
}

/// Digits only; of several values none is believed.
fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let is_number = !value.is_empty() && value.len() < 20 && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// Headers that are about one connection, or that say where a message ends. Whoever sets them from outside can make one
/// request look like two.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    [header::HOST, header::CONTENT_LENGTH, header::EXPECT].contains(name) || is_hop_by_hop(name)
}

const HOP_BY_HOP: [HeaderName; 7] = [
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
];
const MORE_HOP_BY_HOP: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];

/// Takes away what was about one connection: for whoever passes a message on. Its length stays, unless it came in chunks too: then
/// those are its length, and what it claims is not to be believed.
pub fn strip(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    // Mostly there is none, and a look at each costs less than a search for all of them.
    let found: Vec<HeaderName> = headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in named.iter().chain(&found) {
        headers.remove(name);
    }
    if found.contains(&header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name) || MORE_HOP_BY_HOP.contains(&name.as_str())
}

/// Whether whoever sent these headers says something of its connection: that it closes it, mostly.
pub(crate) fn closes(headers: &HeaderMap) -> bool {
    headers.get(header::CONNECTION).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}

/// Whether a header usually carries credentials.
pub(crate) fn is_secret(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name)
}

/// The headers that a `Connection` header names are about that connection too.
pub(crate) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    names.filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// ADP-1: read helpers for servers.
    #[test]
    fn adp_1_a_server_reads_time_and_depth_and_believes_no_nonsense() {
        let headers = |deadline: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in deadline {
                headers.append(&SEAWALL_DEADLINE, HeaderValue::from_static(value));
                headers.append(&SEAWALL_ATTEMPT, HeaderValue::from_static(value));
            }
            headers
        };
        assert_eq!(time_left(&headers(&["1500"])), Some(Duration::from_millis(1500)));
        assert_eq!(retry_depth(&headers(&["2"])), Some(2));
        assert_eq!(retry_depth(&headers(&["99999999999"])), Some(u32::MAX));
        for nonsense in [&[][..], &[""], &["-1"], &["1.5"], &["+1"], &["1", "2"], &["99999999999999999999"]] {
            assert_eq!(time_left(&headers(nonsense)), None, "{nonsense:?}");
        }
    }
}
