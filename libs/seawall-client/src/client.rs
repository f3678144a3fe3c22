//! The client and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Backoff, Guard, Retry, millis, secs};
use seawall_http::{Auth, Egress, HttpClient, Request, Secret};

use crate::error::ClientError;

/// The default time limit of one attempt.
pub const TIMEOUT: Duration = secs(30);
/// The default time limit of a connection. A hub that is there takes it in a fraction of that.
pub const CONNECT_TIMEOUT: Duration = secs(5);
/// The default number of attempts of what may be sent again: about 15 seconds in all, which a restart of the hub takes.
pub const ATTEMPTS: u32 = 6;

/// The largest response that is read at once: 500 dead letters with all their evidence fit.
const RESPONSE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The wait after the first failed attempt. It doubles with each.
const WAIT: Duration = millis(250);
/// The longest wait between two attempts, unless the hub asks for more.
const WAIT_MAX: Duration = secs(10);
/// The statuses after which a request is sent again: the hub is busy, stops, or has no room.
const BUSY: &str = "503,507";

/// A client of one hub. A clone shares connections and the budget of retries.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: HttpClient,
    pub(crate) base: String,
    pub(crate) auth: Auth,
    pub(crate) guard: Guard,
    pub(crate) timeout: Duration,
}

/// The settings of a client.
#[must_use = "a builder makes nothing before `build`"]
pub struct ClientBuilder {
    url: String,
    key: Option<String>,
    timeout: Duration,
    connect_timeout: Duration,
    /// `None` means one attempt.
    retry: Option<Retry>,
    egress: Egress,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("url", &self.url)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Begins a client of the hub at this URL, such as `http://127.0.0.1:8480`.
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            key: None,
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            retry: usual_retry(ATTEMPTS),
            // Whoever makes the client names the address, which is often in their own network.
            egress: Egress::unrestricted(),
        }
    }

    /// A client with this key and the default settings.
    pub fn new(url: impl Into<String>, key: impl Into<String>) -> Result<Self, ClientError> {
        Self::builder(url).key(key).build()
    }

    /// The URL of the hub, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.inner.base
    }
}

impl ClientBuilder {
    /// Sends this API key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The time limit of one attempt (default [`TIMEOUT`]).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The time limit of a connection (default [`CONNECT_TIMEOUT`]).
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The maximum number of attempts of what may be sent again (default [`ATTEMPTS`]); 1 sends every request once.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.retry = usual_retry(attempts).filter(|_| attempts > 1);
        self
    }

    /// Changes how requests are retried: `builder.retry(|retry| retry.no_budget())`. Does nothing after `attempts(1)`.
    pub fn retry(mut self, change: impl FnOnce(Retry) -> Retry) -> Self {
        self.retry = self.retry.map(change);
        self
    }

    /// Which addresses may be called (default all).
    pub fn egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Makes the client. Nothing is connected yet.
    pub fn build(self) -> Result<Client, ClientError> {
        let url = &self.url;
        let wrong =
            |why: &dyn fmt::Display| ClientError::Invalid(format!("`{url}` is not the URL of a hub: {why}"));
        let invalid = |why: &dyn fmt::Display| ClientError::Invalid(why.to_string());
        let base = url.trim_end_matches('/').to_owned();
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(wrong(&"it must start with http:// or https://"));
        }
        Request::get(&base).map_err(|error| wrong(&error))?;
        if base.contains(['?', '#']) {
            return Err(wrong(&"it must not have a query"));
        }
        let auth = match &self.key {
            None => Auth::none(),
            Some(key) => Auth::bearer(&Secret::new(key.as_str())).map_err(|error| invalid(&error))?,
        };
        let http = HttpClient::builder()
            .egress(self.egress)
            .connect_timeout(self.connect_timeout)
            .response_bytes_max(RESPONSE_BYTES_MAX)
            .build()
            .map_err(|error| invalid(&error))?;
        let guard = Guard::builder("hub").attempt_timeout(self.timeout).no_call_timeout();
        let guard = match self.retry {
            None => guard.no_retry(),
            Some(retry) => guard.retry(retry),
        };
        let guard = guard.build().map_err(|error| invalid(&error))?;
        Ok(Client { inner: Arc::new(Inner { http, base, auth, guard, timeout: self.timeout }) })
    }
}

/// Retries when the connection fails, when nothing answers in time, and when the hub is busy. They have a budget, so that many
/// callers do not multiply an outage.
fn usual_retry(attempts: u32) -> Option<Retry> {
    let waits = Backoff::exponential(WAIT).throttled_base(2 * WAIT).cap(WAIT_MAX);
    Some(Retry::max_attempts(attempts).backoff(waits).on_status(BUSY.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    // HUB-10: an address that is none is refused before anything is sent.
    #[test]
    fn hub_10_an_address_is_checked_first() {
        for wrong in ["", "127.0.0.1:8480", "ftp://hub", "http://", "http://hub?x=1", "http://u:p@hub"] {
            assert!(matches!(Client::builder(wrong).build(), Err(ClientError::Invalid(_))), "{wrong}");
        }
        let client = Client::new("https://example.org/seawall/", "a-key").unwrap();
        assert_eq!(client.url(), "https://example.org/seawall");
        assert!(Client::new("http://hub", "a\nkey").is_err());
        assert!(!format!("{client:?}").contains("a-key"));
    }
}
