//! Where many requests go: an address that is looked at once.

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri};

use crate::error::BadRequest;
use crate::request::{Request, checked};

/// An address that requests go below, such as `https://api.example/v2`. Whoever sends many there has it checked once.
#[derive(Clone, Debug)]
pub struct Base {
    scheme: Scheme,
    authority: Authority,
    /// Without a slash at its end.
    path: Box<str>,
}

impl Base {
    /// An address as [`Request::new`] takes it, without a query.
    pub fn new(address: impl AsRef<str>) -> Result<Self, BadRequest> {
        let parts = checked(address.as_ref())?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(BadRequest::Url);
        };
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::as_str);
        if path.contains('?') {
            return Err(BadRequest::Url);
        }
        Ok(Base { scheme, authority, path: path.trim_end_matches('/').into() })
    }

    /// A request to this path below it, which begins with a slash and may have a query.
    pub fn request(&self, method: Method, path: &str) -> Result<Request, BadRequest> {
        if !path.starts_with('/') {
            return Err(BadRequest::Url);
        }
        let whole = if self.path.is_empty() {
            PathAndQuery::try_from(path)
        } else {
            PathAndQuery::try_from([&*self.path, path].concat())
        };
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(whole.map_err(|_| BadRequest::Url)?)
            .build()
            .map_err(|_| BadRequest::Url)?;
        Request::to(method, uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-1: a request below a base is the one to the whole address.
    #[test]
    fn adp_1_a_request_below_a_base_is_the_one_to_the_whole_address() {
        for (base, path) in [
            ("http://a.example", "/"),
            ("http://a.example/", "/x?y=/z"),
            ("https://a.example:8443/v2/", "/a%2Fb//c?x=%20&y"),
            ("http://[::1]:80/v2", "//c"),
        ] {
            let made = Base::new(base).unwrap().request(Method::GET, path).unwrap();
            let whole = Request::get([base.trim_end_matches('/'), path].concat()).unwrap();
            assert_eq!(made.url(), whole.url());
        }
        for wrong in ["ftp://a", "http://u@a", "http://a?x=1", "/x", "http://a:99999"] {
            assert!(Base::new(wrong).is_err(), "{wrong}");
        }
        let base = Base::new("http://a.example").unwrap();
        for wrong in ["", "x", ".evil.example/", "@evil.example/", "/a b"] {
            assert!(base.request(Method::GET, wrong).is_err(), "{wrong}");
        }
        assert_eq!(base.request(Method::CONNECT, "/").err(), Some(BadRequest::Method));
    }
}
