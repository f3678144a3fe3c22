//! The request that goes on to the upstream.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, UPGRADE, VIA};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use hyper::body::{Body as _, Incoming};
use seawall::Deadline;
use seawall_http::header::{retry_depth, time_left};
use seawall_http::{Body, Bounds, Request};
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::render::climbs;

use super::{GatewayRefusal, KEY, PREFIX};
use crate::serve::ConnectionLimits;
use crate::transport::HttpTransport;

/// A body of at most so many bytes is read before it is passed on, so that it can be sent again. A larger one is passed on
/// while it comes, and sent once.
const REPLAYED_BYTES: usize = 64 * 1024;
/// And it has so long to come. The time of one that is passed on while it comes is the call's.
const REPLAYED_WITHIN: Duration = Duration::from_secs(30);

/// The maximum number of added headers, without those of the service.
const ADDED: usize = 8;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The service, and what comes after it, with the query and as it was written.
pub(super) fn split(uri: &Uri) -> (&str, Cow<'_, str>) {
    let whole = uri.path_and_query().map_or("", |whole| whole.as_str());
    let rest = whole.strip_prefix(PREFIX).unwrap_or_default();
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, path) = rest.split_at(end);
    let path = if path.starts_with('/') { path.into() } else { ["/", path].concat().into() };
    (name, path)
}

/// What the caller has said about its own time and retries.
pub(super) fn bounds(headers: &HeaderMap) -> Bounds {
    let mut bounds = Bounds::default();
    bounds.deadline = time_left(headers).map(Deadline::within);
    bounds.retries_above = retry_depth(headers);
    bounds
}

/// What is not passed on at all.
pub(super) fn checked(parts: &Parts, path: &str) -> Result<(), GatewayRefusal> {
    let refused = |status, code, word: &str| Err(GatewayRefusal::own(status, code, word));
    if wants_another_protocol(&parts.headers) {
        let word = "the gateway speaks HTTP and passes no upgrade on: connect to the service itself";
        return refused(StatusCode::NOT_IMPLEMENTED, "upgrade", word);
    }
    if parts.method == Method::CONNECT || parts.method == Method::TRACE {
        let word = "CONNECT and TRACE are about connections, and those end here";
        return refused(StatusCode::NOT_IMPLEMENTED, "method", word);
    }
    if path.split('?').next().is_some_and(climbs) {
        let word = "`.` and `..` would leave the address of the service";
        return refused(StatusCode::BAD_REQUEST, "path", word);
    }
    Ok(())
}

/// An offer of HTTP/2 need not be taken, and some clients make it with every first request; for anything else an answer in HTTP
/// would be of no use.
fn wants_another_protocol(headers: &HeaderMap) -> bool {
    let protocols =
        headers.get_all(UPGRADE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    protocols.into_iter().any(|protocol| !protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"))
}

/// The request as it goes on: the caller's headers but for those about its connection, the service's own where the caller has
/// none, and its credentials.
pub(super) async fn outgoing(
    parts: &mut Parts,
    body: Incoming,
    path: &str,
    service: &Service,
    transport: &HttpTransport,
    line: &ConnectionLimits,
) -> Result<Request, GatewayRefusal> {
    let bad = |error: &dyn std::fmt::Display| {
        GatewayRefusal::own(StatusCode::BAD_REQUEST, "badRequest", error.to_string())
    };
    let base = transport.base(&service.address).map_err(|error| bad(&error))?;
    let request = base.request(parts.method.clone(), path).map_err(|error| bad(&error))?;
    let mut headers = std::mem::take(&mut parts.headers);
    // What is added here and further on: once, and not one by one.
    headers.reserve(ADDED);
    headers.remove(&KEY);
    let auth = transport.auth(service).map_err(|error| bad(&error))?.map(|opened| opened.auth);
    if auth.is_some() {
        // The service has credentials of its own: whoever calls it is not asked for theirs.
        headers.remove(AUTHORIZATION);
    }
    let mut request = request.forward_all(headers, |headers| introduce(headers, line));
    for (name, value) in &service.headers {
        if !request.headers().contains_key(name.as_str()) {
            request = request.header(name, value).map_err(|error| bad(&error))?;
        }
    }
    if let Some(auth) = auth {
        request = request.auth(auth);
    }
    if body.is_end_stream() {
        return Ok(request);
    }
    Ok(request.body(read(body).await?))
}

/// Says on whose behalf it comes.
fn introduce(headers: &mut HeaderMap, line: &ConnectionLimits) {
    let chain = match headers.get(FORWARDED_FOR) {
        None => line.peer.clone(),
        // Who was there before may have said so on several lines.
        Some(_) => {
            let before = headers.get_all(FORWARDED_FOR).iter().chain([&line.peer]);
            let chain = before.map(HeaderValue::as_bytes).collect::<Vec<_>>().join(&b", "[..]);
            HeaderValue::from_bytes(&chain).unwrap_or_else(|_| line.peer.clone())
        }
    };
    headers.insert(FORWARDED_FOR, chain);
    if !headers.contains_key(FORWARDED_HOST)
        && let Some(host) = headers.get(HOST).cloned()
    {
        headers.insert(FORWARDED_HOST, host);
    }
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
    headers.append(VIA, HeaderValue::from_static("1.1 seawall"));
}

async fn read(body: Incoming) -> Result<Body, GatewayRefusal> {
    if body.size_hint().lower() > REPLAYED_BYTES as u64 {
        return Ok(Body::stream(body));
    }
    match tokio::time::timeout(REPLAYED_WITHIN, Body::buffered(body, REPLAYED_BYTES)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => Err(GatewayRefusal::own(StatusCode::BAD_REQUEST, "badRequest", error.to_string())),
        Err(_) => Err(slow_body()),
    }
}

/// It was waited for the client, until the time was over.
pub(super) fn slow_body() -> GatewayRefusal {
    GatewayRefusal::own(StatusCode::REQUEST_TIMEOUT, "slowBody", "the body did not come in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-2: what comes after the service's name is passed on as it was written.
    #[test]
    fn hub_2_a_path_is_passed_on_as_it_was_written() {
        let split = |uri: &'static str| {
            let uri = Uri::from_static(uri);
            let (name, path) = split(&uri);
            (name.to_owned(), path.into_owned())
        };
        assert_eq!(
            split("/gateway/billing/a%2Fb//c?x=%20&y"),
            ("billing".into(), "/a%2Fb//c?x=%20&y".into())
        );
        assert_eq!(split("/gateway/billing"), ("billing".into(), "/".into()));
        assert_eq!(split("/gateway/billing?a=/b"), ("billing".into(), "/?a=/b".into()));
        assert_eq!(split("http://elsewhere/gateway/billing/x"), ("billing".into(), "/x".into()));
    }
}
