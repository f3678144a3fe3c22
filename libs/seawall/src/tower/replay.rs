//! Requests that may be sent more than once.

use crate::retry::Safety;

/// A request that may be sent more than once.
///
/// With the feature `http` an `http::Request` is one if its body can be cloned, with the feature `reqwest` its request is one
/// too; their safety is that of their method.
pub trait Replay: Sized {
    /// The same request once more; `None` if it can't be sent again, as when its body is a stream that was read. Then there
    /// is one attempt.
    fn try_clone(&self) -> Option<Self>;

    /// Whether it is safe to send it again after it may have been served already.
    fn safety(&self) -> Safety {
        Safety::Once
    }
}

/// Copies requests, for [`GuardLayer::replay_with`](super::GuardLayer::replay_with). Every function
/// `Fn(&Req) -> Option<Req>` does.
pub trait CopyRequest<Req> {
    /// The same request once more; `None` if it can't be sent again. A request that was copied once can be copied again.
    fn copy(&self, request: &Req) -> Option<Req>;
}

/// Says how safe it is to send a request again. Every function `Fn(&Req) -> Safety` does.
pub trait RequestSafety<Req> {
    /// Whether it is safe to send this request again after it may have been served already.
    fn safety(&self, request: &Req) -> Safety;
}

/// Asks the request itself: see [`Replay`].
#[derive(Clone, Copy, Debug, Default)]
pub struct FromRequest;

/// No request may be sent again, unless it certainly was not served.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysOnce;

impl<Req: Replay> CopyRequest<Req> for FromRequest {
    fn copy(&self, request: &Req) -> Option<Req> {
        request.try_clone()
    }
}

impl<Req: Replay> RequestSafety<Req> for FromRequest {
    fn safety(&self, request: &Req) -> Safety {
        request.safety()
    }
}

impl<Req, F: Fn(&Req) -> Option<Req>> CopyRequest<Req> for F {
    fn copy(&self, request: &Req) -> Option<Req> {
        self(request)
    }
}

impl<Req, F: Fn(&Req) -> Safety> RequestSafety<Req> for F {
    fn safety(&self, request: &Req) -> Safety {
        self(request)
    }
}

impl<Req> RequestSafety<Req> for AlwaysOnce {
    fn safety(&self, _: &Req) -> Safety {
        Safety::Once
    }
}

#[cfg(feature = "http")]
pub use of_http::{ByMethod, copy_with_body};

#[cfg(feature = "http")]
mod of_http {
    use super::{Replay, RequestSafety};
    use crate::retry::Safety;

    /// Goes by the method of an `http::Request`.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct ByMethod;

    impl<B> RequestSafety<http::Request<B>> for ByMethod {
        fn safety(&self, request: &http::Request<B>) -> Safety {
            Safety::of_http_method(request.method())
        }
    }

    impl<B: Clone> Replay for http::Request<B> {
        fn try_clone(&self) -> Option<Self> {
            Some(self.clone())
        }

        fn safety(&self) -> Safety {
            Safety::of_http_method(self.method())
        }
    }

    #[cfg(feature = "reqwest")]
    impl Replay for reqwest::Request {
        fn try_clone(&self) -> Option<Self> {
            self.try_clone()
        }

        fn safety(&self) -> Safety {
            Safety::of_http_method(self.method())
        }
    }

    /// The same request with this body: method, URI, version, headers and extensions are copied. For bodies that can't be
    /// cloned.
    #[must_use]
    pub fn copy_with_body<A, B>(request: &http::Request<A>, body: B) -> http::Request<B> {
        let mut copy = http::Request::new(body);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        copy
    }
}
