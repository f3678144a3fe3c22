//! What every answer of the dashboard says to the browser, and which requests it does not take.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Nothing is loaded from elsewhere, no script or style is in the page itself, and nobody else shows it in a frame: a text that
/// somebody has smuggled into an event stays a text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(super) async fn protect(request: Request, next: Next) -> Response {
    let mut response = if request.method().is_safe() || is_from_here(request.headers()) {
        next.run(request).await
    } else {
        (StatusCode::FORBIDDEN, "request from another site rejected\n").into_response()
    };
    say(response.headers_mut());
    response
}

/// What every page says to the browser.
pub(super) fn say(headers: &mut HeaderMap) {
    let mut say = |name: HeaderName, value: &'static str| {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    };
    say(header::CONTENT_SECURITY_POLICY, POLICY);
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::X_FRAME_OPTIONS, "DENY");
    say(header::REFERRER_POLICY, "same-origin");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(header::CACHE_CONTROL, "no-store");
}

/// Whether a browser says that the page which sends this is one of ours. One that says nothing is none, or a very old one; it
/// still has to know the token of the session.
fn is_from_here(headers: &HeaderMap) -> bool {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = said("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    match (said("origin"), said("host")) {
        (Some(origin), Some(host)) => {
            let without_scheme = origin.split_once("://").map(|(_, rest)| rest);
            without_scheme.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
        }
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// Whether it is a page of ours that somebody is to be led to, and nothing that a browser takes for another place.
pub(super) fn leads_here(to: &str) -> bool {
    to.starts_with('/') && !to.starts_with("//") && !to.contains(['\\', '\n', '\r', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-1: what another site sends is refused, whichever way a browser says so.
    #[test]
    fn sec_1_another_site_is_told_apart() {
        let from_here = |pairs: &[(&'static str, &'static str)]| {
            let headers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            is_from_here(&headers)
        };
        assert!(from_here(&[("sec-fetch-site", "same-origin")]));
        assert!(from_here(&[("origin", "http://hub:8480"), ("host", "hub:8480")]));
        assert!(from_here(&[("host", "hub")]));
        for bad in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "http://evil"), ("host", "hub")],
            &[("origin", "null"), ("host", "hub")],
            &[("origin", "http://hub")],
            &[("sec-fetch-site", "cross-site"), ("origin", "http://hub"), ("host", "hub")],
        ] {
            assert!(!from_here(bad), "{bad:?}");
        }
    }
}
