//! A request: what to send, and how safe it is to send it again.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::Scheme;
use http::{Method, Uri};
use seawall::Safety;

use crate::auth::Auth;
use crate::body::Body;
use crate::error::BadRequest;
use crate::header::{self, IDEMPOTENCY_KEY};
use crate::host::Host;
use crate::observe::AttemptObserver;

/// A request. Cheap to make and to keep: a body of bytes is shared by all its attempts.
///
/// Whether it may be sent again is decided by its method, unless you say otherwise: GET, HEAD, PUT, DELETE, OPTIONS and TRACE
/// are idempotent, all others are sent again only if they certainly were not served. With [`keyed`](Request::keyed) the
/// server is given a key by which it recognises a repetition.
///
/// ```
/// # use seawall_http::Request;
/// let charge = Request::post("https://pay.example/charges")?
///     .header("content-type", "application/json")?
///     .body(r#"{"cents": 4711}"#)
///     .keyed();
/// assert!(Request::get("ftp://files.example").is_err());
/// assert!(charge.header("x-note", "two\r\nlines").is_err());
/// # Ok::<(), seawall_http::BadRequest>(())
/// ```
pub struct Request {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) auth: Auth,
    pub(crate) safety: Safety,
    pub(crate) limit: Option<u64>,
    /// How much of the answer is kept, if only its beginning matters.
    pub(crate) sample: Option<usize>,
    pub(crate) announced: bool,
    pub(crate) only_success: bool,
    pub(crate) observer: Option<Arc<dyn AttemptObserver>>,
}

impl Request {
    /// A request without headers and body. The URL is a whole one, `http` or `https`, without user and password.
    pub fn new(method: Method, url: impl AsRef<str>) -> Result<Self, BadRequest> {
        Self::to(method, checked(url.as_ref())?)
    }

    /// To an address that has been checked.
    pub(crate) fn to(method: Method, uri: Uri) -> Result<Self, BadRequest> {
        if method == Method::CONNECT {
            return Err(BadRequest::Method);
        }
        let safety = Safety::of_http_method(method.as_str());
        Ok(Request {
            method,
            uri,
            headers: HeaderMap::new(),
            body: Body::empty(),
            auth: Auth::none(),
            safety,
            limit: None,
            sample: None,
            announced: true,
            only_success: false,
            observer: None,
        })
    }

    /// A GET.
    pub fn get(url: impl AsRef<str>) -> Result<Self, BadRequest> {
        Self::new(Method::GET, url)
    }

    /// A POST.
    pub fn post(url: impl AsRef<str>) -> Result<Self, BadRequest> {
        Self::new(Method::POST, url)
    }

    /// Sets a header, in place of any other of that name.
    ///
    /// Refused are values with line breaks and other control characters, and headers that are about the connection or say
    /// where the message ends, such as `Host` and `Content-Length`: those are made here.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Result<Self, BadRequest> {
        let text = name.as_ref();
        let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| BadRequest::HeaderName)?;
        if header::is_ours(&name) {
            return Err(BadRequest::OurHeader(name));
        }
        let Ok(mut value) = HeaderValue::from_bytes(value.as_ref()) else {
            return Err(BadRequest::HeaderValue(name));
        };
        value.set_sensitive(header::is_secret(&name));
        if name == IDEMPOTENCY_KEY && self.safety == Safety::Once {
            self.safety = Safety::Keyed;
        }
        self.headers.insert(name, value);
        Ok(self)
    }

    /// Takes over the headers of a request that came in, without those that were about its connection or its length.
    #[must_use]
    pub fn forward(mut self, headers: &HeaderMap) -> Self {
        let named = header::named_by_connection(headers);
        for (name, value) in headers {
            if !header::is_ours(name) && !named.contains(name) {
                self.headers.append(name, value.clone());
            }
        }
        if self.headers.contains_key(&IDEMPOTENCY_KEY) && self.safety == Safety::Once {
            self.safety = Safety::Keyed;
        }
        self
    }

    /// As [`forward`](Request::forward), by value and in place of all headers so far. `add` is what the proxy says itself: it
    /// comes after what was about the connection is gone, or a client could take it away by naming it there.
    #[must_use]
    pub fn forward_all(mut self, mut headers: HeaderMap, add: impl FnOnce(&mut HeaderMap)) -> Self {
        header::strip(&mut headers);
        add(&mut headers);
        for name in [http::header::HOST, http::header::CONTENT_LENGTH, http::header::EXPECT] {
            headers.remove(name);
        }
        self.headers = headers;
        if self.headers.contains_key(&IDEMPOTENCY_KEY) && self.safety == Safety::Once {
            self.safety = Safety::Keyed;
        }
        self
    }

    /// Its headers so far.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Sends this body: bytes, text, or a stream made by [`Body::stream`].
    #[must_use]
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// Credentials, added to each attempt last of all.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// The server honours `Idempotency-Key`: one is sent that is the same for all attempts of the call, unless the header is
    /// set to a key of your own.
    #[must_use]
    pub fn keyed(self) -> Self {
        self.safety(Safety::Keyed)
    }

    /// How safe it is to send it again, whatever its method says.
    #[must_use]
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// The largest body that its answer may have, in place of the client's own limit.
    #[must_use]
    pub fn response_bytes_max(mut self, bytes: u64) -> Self {
        self.limit = Some(bytes);
        self
    }

    /// Keeps only so many bytes of the answer: its status decides, and its body is only looked at. An answer that is longer,
    /// breaks off or does not end within the attempt's time is no error, and [`Response::cut`](crate::Response::cut) says why
    /// the rest is missing.
    #[must_use]
    pub fn sample_response(mut self, bytes: usize) -> Self {
        self.sample = Some(bytes);
        self
    }

    /// Sends no `Seawall-Deadline` and no `Seawall-Attempt`: for peers that should not see them.
    #[must_use]
    pub fn unannounced(mut self) -> Self {
        self.announced = false;
        self
    }

    /// Takes every answer but 2xx for a fault. Without it, 3xx is an answer: 304 often is what was hoped for.
    #[must_use]
    pub fn only_success(mut self) -> Self {
        self.only_success = true;
        self
    }

    /// Reports every attempt to this observer, if the request is [held](crate::HttpClient::hold).
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn AttemptObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Its method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &Uri {
        &self.uri
    }

    /// What will be sent, without credentials. To be kept as evidence of an attempt.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        let mut headers = self.headers.clone();
        let secret = headers.iter().filter(|(name, value)| value.is_sensitive() || header::is_secret(name));
        let secret: Vec<HeaderName> = secret.map(|(name, _)| name.clone()).collect();
        for name in secret {
            headers.remove(name);
        }
        Evidence {
            method: self.method.clone(),
            url: self.uri.clone(),
            headers,
            body: self.body.bytes().cloned(),
        }
    }

    /// Whether its body can be sent again.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        self.body.bytes().is_some()
    }

    /// The same request once more; `None` if its body is a stream.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let body = Body::from(self.body.bytes()?.clone());
        let (method, uri, headers) = (self.method.clone(), self.uri.clone(), self.headers.clone());
        let Request { safety, limit, sample, announced, only_success, .. } = *self;
        let (auth, observer) = (self.auth.clone(), self.observer.clone());
        Some(Request {
            method,
            uri,
            headers,
            body,
            auth,
            safety,
            limit,
            sample,
            announced,
            only_success,
            observer,
        })
    }
}

#[cfg(feature = "tower")]
impl seawall::tower::Replay for Request {
    fn try_clone(&self) -> Option<Self> {
        self.try_clone()
    }

    /// A layer does not say which call a request belongs to, so only a key of your own makes it a keyed one.
    fn safety(&self) -> Safety {
        if self.safety == Safety::Keyed && !self.headers.contains_key(&IDEMPOTENCY_KEY) {
            return Safety::Once;
        }
        self.safety
    }
}

pub(crate) fn checked(url: &str) -> Result<Uri, BadRequest> {
    let uri: Uri = url.parse().map_err(|_| BadRequest::Url)?;
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
        return Err(BadRequest::Url);
    };
    if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
        return Err(BadRequest::Scheme);
    }
    if cfg!(not(feature = "tls")) && *scheme == Scheme::HTTPS {
        return Err(BadRequest::NoTls);
    }
    if authority.as_str().contains('@') {
        return Err(BadRequest::User);
    }
    // A port that is none (`host:`, `host:99999`) must not become the usual one.
    let rest = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    if !rest.is_empty() && uri.port_u16().is_none_or(|port| port == 0) {
        return Err(BadRequest::Url);
    }
    Host::parse(authority.host()).map(|_| uri).ok_or(BadRequest::Host)
}

/// What was sent, but for the credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct Evidence {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Uri,
    /// The headers that were set, without those that carry credentials.
    pub headers: HeaderMap,
    /// The body, unless it was a stream.
    pub body: Option<Bytes>,
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.body.as_ref().map(Bytes::len);
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Evidence")
            .field("method", &self.method)
            .field("host", &self.url.host())
            .field("path", &self.url.path())
            .field("headers", &names)
            .field("body_bytes", &bytes)
            .finish()
    }
}

/// Shows neither values of headers nor the query: that is where credentials are.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &self.uri.host())
            .field("path", &self.uri.path())
            .field("headers", &names)
            .field("body", &self.body)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}
