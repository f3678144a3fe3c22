//! One request to the hub.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use seawall::{Guard, Kind, Safety};
use seawall_http::{HeaderMap, HttpError, Method, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::{ClientError, RawResponse};
use crate::json::JsonBody;
use crate::path::with_query;
use crate::reply::Reply;

const REASON: &str = "x-seawall-reason";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A request that is sent when it is awaited: `client.services().put(&spec).reason("new host").await`.
#[must_use = "nothing is sent before it is awaited"]
pub struct ApiCall<T> {
    client: Client,
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Result<String, serde_json::Error>>,
    safety: Safety,
    timeout: Option<Duration>,
    /// True if nothing is a reason to send it again.
    single: bool,
    marker: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ApiCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

impl<T> ApiCall<T> {
    pub(crate) fn new(client: &Client, method: Method, path: impl Into<String>) -> Self {
        let safety = Safety::of_http_method(&method);
        Self {
            client: client.clone(),
            method,
            path: path.into(),
            headers: Vec::new(),
            body: None,
            safety,
            timeout: None,
            single: false,
            marker: PhantomData,
        }
    }

    pub(crate) fn get(client: &Client, path: impl Into<String>) -> Self {
        Self::new(client, Method::GET, path)
    }

    pub(crate) fn post(client: &Client, path: impl Into<String>) -> Self {
        Self::new(client, Method::POST, path)
    }

    pub(crate) fn delete(client: &Client, path: impl Into<String>) -> Self {
        // A deletion that is sent again finds nothing, so that its success would be reported as an error.
        Self { safety: Safety::Once, ..Self::new(client, Method::DELETE, path) }
    }

    pub(crate) fn query(mut self, query: &impl Serialize) -> Self {
        self.path = with_query(&self.path, query);
        self
    }

    pub(crate) fn json<B>(mut self, body: impl Into<JsonBody<B>>) -> Self {
        self.body = Some(body.into().text);
        self
    }

    /// The hub honours `Idempotency-Key` here, so that the request may be sent again.
    pub(crate) fn keyed(mut self) -> Self {
        self.safety = Safety::Keyed;
        self
    }

    /// Says that the request may be sent again without doing a thing twice, and so is, as the client is set.
    pub fn idempotent(mut self) -> Self {
        self.safety = Safety::Idempotent;
        self
    }

    /// Sends the request once, also if it certainly did not reach the hub.
    pub fn single_attempt(mut self) -> Self {
        self.single = true;
        self
    }

    /// Records this reason in the audit log.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.header(REASON, reason)
    }

    /// Changes it only if this is its version; otherwise the error [`is_stale`](ClientError::is_stale). 0 means that it must not exist
    /// yet. Such a request is not sent again after it may have been carried out: its own change would make it stale.
    pub fn if_version(mut self, version: u64) -> Self {
        if self.safety == Safety::Idempotent {
            self.safety = Safety::Once;
        }
        match version {
            0 => self.header("if-none-match", "*"),
            version => self.header("if-match", format!("\"{version}\"")),
        }
    }

    /// Two requests with the same key are carried out once. Requests that create something have a key of their own otherwise.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.keyed().header(IDEMPOTENCY_KEY, key)
    }

    /// The time limit of one attempt, instead of the client's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The request on the wire.
    pub(crate) fn request(&mut self) -> Result<Request, ClientError> {
        let invalid = |error: &dyn fmt::Display| ClientError::Invalid(error.to_string());
        let inner = &self.client.inner;
        let url = format!("{}{}", inner.base, self.path);
        // The hub does not hear how long we wait: it could only give up earlier.
        let request = Request::new(self.method.clone(), url).map_err(|error| invalid(&error))?;
        let mut request = request.unannounced().auth(inner.auth.clone()).safety(self.safety);
        for (name, value) in &self.headers {
            request = request.header(name, value).map_err(|error| invalid(&error))?;
        }
        let Some(body) = self.body.take() else { return Ok(request) };
        let body = body.map_err(|error| invalid(&error))?;
        let request = request.header("content-type", "application/json").map_err(|error| invalid(&error))?;
        Ok(request.body(body))
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The time limit of one attempt.
    pub(crate) fn time(&self) -> Duration {
        self.timeout.unwrap_or(self.client.inner.timeout)
    }
}

impl<T: DeserializeOwned> ApiCall<T> {
    /// Sends the request and reads its response.
    pub async fn send(mut self) -> Result<Reply<T>, ClientError> {
        let (response, retry_after) = self.response().await?;
        Reply::read(response, retry_after)
    }

    async fn response(&mut self) -> Result<(RawResponse, Option<u64>), ClientError> {
        let (request, time) = (self.request()?, self.time());
        let inner = &self.client.inner;
        let through = inner.guard.operation(self.method.as_str()).attempt_timeout(time);
        let through = if self.single { through.single_attempt() } else { through };
        let answer = inner.http.send(through, &request).await.map_err(|error| no_response(&error, time))?;
        let retry_after = text_of(answer.headers(), "retry-after").and_then(|text| text.parse().ok());
        let response = RawResponse {
            status: answer.status().as_u16(),
            location: text_of(answer.headers(), "location"),
            text: String::from_utf8_lossy(answer.body()).into_owned(),
        };
        Ok((response, retry_after))
    }
}

pub(crate) fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
}

pub(crate) fn no_response(error: &seawall::Error<HttpError>, time: Duration) -> ClientError {
    let timed_out = error.kind() == Kind::TimedOut;
    let reason = if timed_out {
        late(time)
    } else {
        error.last().map_or_else(|| error.to_string(), ToString::to_string)
    };
    ClientError::Unreachable { reason, timed_out }
}

pub(crate) fn late(time: Duration) -> String {
    format!("no response within {time:?}")
}

/// A guard for a response that is read for as long as it takes.
pub(crate) fn streaming() -> Result<Guard, ClientError> {
    let guard = Guard::builder("hub").no_call_timeout().no_retry().build();
    guard.map_err(|error| ClientError::Invalid(error.to_string()))
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for ApiCall<T> {
    type Output = Result<Reply<T>, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
