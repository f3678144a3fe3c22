//! The client.

mod builder;
mod exchange;
mod held;
mod passing;
mod reply;
mod wire;

pub use builder::{BadClient, HttpClientBuilder};
pub use held::Bounds;
pub(crate) use passing::plus;
pub use passing::{Held, HeldBody};

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use hyper_util::client::legacy::Client;
use seawall::client::ByStatus;
use seawall::fault::Classifier;
use seawall::{Attempt, Clock, Error, Guard};

use crate::body::Outgoing;
use crate::dial::{Dialer, Socket};
use crate::error::HttpError;
use crate::request::Request;
use crate::response::{Opened, Response};
use exchange::Resend;
use wire::Wires;
pub(crate) use wire::{FOR_A_BODY, Wire};

/// A pool of connections, and the rules for opening them. A handle: clones share everything.
///
/// What it sends goes through a [`Guard`], which has the timeouts and the retries. Redirects are not followed, and proxies of
/// the environment are not used.
///
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Guard, Retry, secs};
/// use seawall_http::{HttpClient, Request};
///
/// let client = HttpClient::builder().build()?;
/// let guard = Guard::builder("inventory").call_timeout(secs(5)).retry(Retry::max_attempts(3)).build()?;
/// let stock = client.send(&guard, Request::get("https://inventory.example/stock/A-7")?).await?.good()?;
/// println!("{} bytes in {:?}", stock.body().len(), stock.timings().total);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pool: Client<Dialer, Outgoing>,
    /// Connections that are driven by whoever uses them.
    wires: Wires,
    dialer: Dialer,
    clock: Clock,
    response_bytes_max: u64,
}

impl HttpClient {
    /// Begins a client.
    pub fn builder() -> HttpClientBuilder {
        HttpClientBuilder::default()
    }

    /// Sends a request through a guard, and reads the whole answer within the attempt's time.
    ///
    /// `through` is a guard, or what you say about the call to one: `guard.operation("charge").about("order 4711")`. How often
    /// the request may be sent is said by the request. An answer with a status that is a fault is retried if the guard does
    /// that, and is the result if it was the last: see [`Response::good`].
    pub async fn send<'g>(
        &self,
        through: impl RequestGuard<'g>,
        request: impl Borrow<Request>,
    ) -> Result<Response, Error<HttpError>> {
        let request = request.borrow();
        let operation = |attempt| self.whole(request, Some(attempt), Resend::Once);
        terms(through, request).call(operation).await
    }

    /// Sends a request once: one attempt, and one send on the wire. For those who have a schedule of their own.
    pub async fn attempt<'g>(
        &self,
        through: impl RequestGuard<'g>,
        request: impl Borrow<Request>,
    ) -> Result<Response, Error<HttpError>> {
        let request = request.borrow();
        let operation = |attempt| self.whole(request, Some(attempt), Resend::Never);
        terms(through, request).single_attempt().call(operation).await
    }

    /// As [`send`](HttpClient::send), but the body of the answer is left to be read. The guard's call is over with the headers,
    /// and so is its place in a bulkhead; the attempt's deadline goes on.
    pub async fn open<'g>(
        &self,
        through: impl RequestGuard<'g>,
        request: impl Borrow<Request>,
    ) -> Result<Opened, Error<HttpError>> {
        let request = request.borrow();
        let operation = |attempt| self.opened(request, attempt);
        terms(through, request).call(operation).await
    }

    /// One attempt of a call that you guard yourself, with hedges, fallbacks or another guard to fall back on:
    ///
    /// ```no_run
    /// # async fn f(client: &seawall_http::HttpClient, guard: seawall::Guard, request: seawall_http::Request) {
    /// use seawall_http::ByStatus;
    /// let terms = guard.idempotent().classify(ByStatus);
    /// let answer = terms.hedged().call(|attempt| client.exchange(&request, attempt)).await;
    /// # }
    /// ```
    ///
    /// What the request says about its safety is up to you here, and its time is only what the guard around it allows.
    pub async fn exchange(&self, request: &Request, attempt: Attempt) -> Result<Response, HttpError> {
        self.whole(request, Some(attempt), Resend::Once).await
    }

    /// As [`exchange`](HttpClient::exchange), but the body of the answer is left to be read: for whoever counts its bytes while
    /// they come. One that announces more than the limit is refused at once.
    pub async fn open_attempt(&self, request: &Request, attempt: Attempt) -> Result<Opened, HttpError> {
        let opened = self.opened(request, attempt).await?;
        opened.body.check_length()?;
        Ok(opened)
    }

    /// As [`exchange`](HttpClient::exchange), and one send on the wire: a token that the peer refuses is thrown away, and the next
    /// attempt has another. For those who count and record every attempt.
    pub async fn single_exchange(&self, request: &Request, attempt: Attempt) -> Result<Response, HttpError> {
        self.whole(request, Some(attempt), Resend::Never).await
    }

    /// Opens a connection for another protocol than HTTP, under the same rules as all others: mail goes out through the same
    /// door. It is plain until [`Socket::secure`](crate::Socket::secure).
    pub async fn connect(&self, host: &str, port: u16) -> Result<Socket, HttpError> {
        self.inner.dialer.connect(host, port).await
    }

    /// Whether the egress rules allow this host, without connecting to it: a name is resolved, and every address is checked. It
    /// says nothing about tomorrow, when the name may lead elsewhere; each connection is checked again.
    pub async fn check(&self, host: &str, port: u16) -> Result<(), HttpError> {
        self.inner.dialer.check(host, port).await
    }

    /// Closes connections of [`hold`](HttpClient::hold) that have been idle for too long. They have no task of their own that
    /// would; whoever uses `hold` calls this now and then.
    pub fn close_idle(&self) {
        self.inner.wires.sweep();
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }
}

fn terms<'g>(
    through: impl RequestGuard<'g>,
    request: &Request,
) -> seawall::CallBuilder<'g, Classifier<ByStatus>> {
    let terms = through.by_status().safety(request.safety);
    // A body that can't be sent again is sent once.
    if request.is_replayable() { terms } else { terms.single_attempt() }
}

/// The guard that protects a request: a [`Guard`], or a call of one with its own terms.
///
/// This trait is sealed.
pub trait RequestGuard<'g>: sealed::Sealed {
    /// Returns the call, which judges a response by its status.
    #[doc(hidden)]
    fn by_status(self) -> seawall::CallBuilder<'g, Classifier<ByStatus>>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &super::Guard {}
    impl<C> Sealed for seawall::CallBuilder<'_, C> {}
}

impl<'g> RequestGuard<'g> for &'g Guard {
    fn by_status(self) -> seawall::CallBuilder<'g, Classifier<ByStatus>> {
        self.classify(ByStatus)
    }
}

impl<'g, C> RequestGuard<'g> for seawall::CallBuilder<'g, C> {
    fn by_status(self) -> seawall::CallBuilder<'g, Classifier<ByStatus>> {
        self.classify(ByStatus)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("response_bytes_max", &self.inner.response_bytes_max)
            .finish_non_exhaustive()
    }
}

/// As a service, for stacks of tower layers: `GuardLayer::new(guard).classify(ByStatus)` around it guards it.
#[cfg(feature = "tower")]
impl tower_service::Service<Request> for HttpClient {
    type Response = Response;
    type Error = HttpError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response, HttpError>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), HttpError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.whole(&request, None, Resend::Once).await })
    }
}
