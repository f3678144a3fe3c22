//! How a client is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use seawall::{Clock, secs};

use super::wire::Wires;
use super::{HttpClient, Inner};
#[cfg(feature = "tls")]
use crate::dial::{BadTls, Tls};
use crate::dial::{Dialer, Dialing, Proxy, Resolve, Resolver, System};
use crate::egress::Egress;

/// Name, connection and TLS together: a peer that is there answers in a fraction of it.
const CONNECT_TIMEOUT: Duration = secs(5);
/// As many idle connections per host as a busy service needs; more are closed when they have nothing to do.
const IDLE_PER_HOST: usize = 64;
/// Shorter than most servers keep a connection, so that it is we who close it: a request that meets a connection which the
/// server is closing is lost, and nobody knows whether it was served.
const IDLE_TIMEOUT: Duration = secs(15);
/// Larger answers should be read piece by piece.
const RESPONSE_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// What is read of a connection before it is handled; the headers of an answer have to fit.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// All calls to a host share one connection of HTTP/2. If it goes dead without a word, each of them would run out of time on
/// it; so it is asked while calls are under way whether it lives.
#[cfg(feature = "http2")]
const H2_PING_INTERVAL: Duration = secs(5);
#[cfg(feature = "http2")]
const H2_PING_TIMEOUT: Duration = secs(5);

/// A client in the making.
#[must_use = "nothing is made until `build`"]
#[derive(Debug)]
pub struct HttpClientBuilder {
    egress: Egress,
    resolver: Resolver,
    proxy: Option<Proxy>,
    clock: Clock,
    connect_timeout: Duration,
    idle_per_host: usize,
    idle_timeout: Duration,
    response_bytes_max: u64,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Default for HttpClientBuilder {
    fn default() -> Self {
        HttpClientBuilder {
            egress: Egress::default(),
            resolver: Resolver(Arc::new(System::new())),
            proxy: None,
            clock: Clock::default(),
            connect_timeout: CONNECT_TIMEOUT,
            idle_per_host: IDLE_PER_HOST,
            idle_timeout: IDLE_TIMEOUT,
            response_bytes_max: RESPONSE_BYTES_MAX,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl HttpClientBuilder {
    /// Which addresses may be called: public ones, unless something else is said.
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Who finds the addresses of names: the system, unless something else is said.
    pub fn resolver(mut self, resolver: impl Resolve) -> Self {
        self.resolver = Resolver(Arc::new(resolver));
        self
    }

    /// Connects through a proxy.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Whose certificates are believed, and which one is shown: Mozilla's authorities and none, unless something else is said.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// How long name, connection and TLS handshake may take together. The attempt's own time goes on meanwhile.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How many connections per host are kept while they have nothing to do. How many there are at once is up to the
    /// guard's bulkhead.
    pub fn idle_per_host(mut self, connections: usize) -> Self {
        self.idle_per_host = connections;
        self
    }

    /// How long a connection is kept that has nothing to do.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The largest body that an answer may have. A larger one is an error, never cut short.
    pub fn response_bytes_max(mut self, bytes: u64) -> Self {
        self.response_bytes_max = bytes;
        self
    }

    /// The clock that it goes by: the guards' one.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the client. Nothing is connected yet.
    pub fn build(self) -> Result<HttpClient, BadClient> {
        if self.connect_timeout.is_zero() || self.idle_timeout.is_zero() {
            return Err(BadClient::NoTime);
        }
        let dialer = Dialer::new(Dialing {
            egress: self.egress,
            resolver: self.resolver,
            proxy: self.proxy,
            timeout: self.connect_timeout,
            clock: self.clock.clone(),
            #[cfg(feature = "tls")]
            tls: self.tls.unwrap_or_else(Tls::mozilla).connector().map_err(BadClient::Tls)?,
        });
        let mut pool = Client::builder(TokioExecutor::new());
        #[cfg(feature = "http2")]
        pool.timer(TokioTimer::new())
            .http2_keep_alive_interval(H2_PING_INTERVAL)
            .http2_keep_alive_timeout(H2_PING_TIMEOUT);
        let pool = pool
            // Without a timer nothing would ever look for connections that are idle for too long.
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_timeout)
            .pool_max_idle_per_host(self.idle_per_host)
            .http1_max_buf_size(BUFFER_BYTES_MAX)
            // Requests that a closed connection did not take are given to another one in `exchange.rs`, where it is known
            // which connection they are waiting for.
            .retry_canceled_requests(false)
            .build(dialer.clone());
        let (clock, response_bytes_max) = (self.clock, self.response_bytes_max);
        let wires = Wires::new(clock.clone(), self.idle_per_host, self.idle_timeout, BUFFER_BYTES_MAX);
        Ok(HttpClient { inner: Arc::new(Inner { pool, wires, dialer, clock, response_bytes_max }) })
    }
}

/// Why a client can't be made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadClient {
    /// A time limit is zero.
    NoTime,
    /// The certificates or the key can't be used.
    #[cfg(feature = "tls")]
    Tls(BadTls),
}

impl fmt::Display for BadClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadClient::NoTime => f.write_str("a time limit of zero leaves no time for anything"),
            #[cfg(feature = "tls")]
            BadClient::Tls(bad) => write!(f, "{bad}"),
        }
    }
}

impl std::error::Error for BadClient {}
