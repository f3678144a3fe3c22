//! OAuth 2: a token for client credentials.

use std::fmt;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, HeaderValue};
use seawall::task::Singleflight;
use seawall::{Fault, Tick, secs};

use super::{Auth, Secret, sensitive};
use crate::client::HttpClient;
use crate::error::{BadRequest, BoxError, Cause, HttpError};
use crate::request::Request;

/// A token is fetched within this time, or not at all.
const FETCH_TIMEOUT: Duration = secs(10);
/// A token is replaced this long before it expires, so that it does not expire on the way.
const EARLY: Duration = secs(30);
/// How long a token is used whose server does not say.
const USUAL_LIFE: Duration = secs(300);
/// No token is used for longer, whatever its server says.
const LONGEST_LIFE: Duration = secs(24 * 3600);
/// The answer of a token server is at most this large.
const ANSWER_MAX: u64 = 64 * 1024;

/// Client credentials of OAuth 2 ([RFC 6749, 4.4](https://www.rfc-editor.org/rfc/rfc6749#section-4.4)).
///
/// The token is fetched by the client that sends the request, so under the same egress rules; all who wait for it share one
/// request. It is replaced before it expires, and once when the peer refuses it. A handle: clones share the token.
#[derive(Clone)]
pub struct OAuth2 {
    inner: Arc<Inner>,
}

struct Inner {
    grant: Grant,
    fetching: Singleflight<u64, Token>,
    held: Mutex<Held>,
}

struct Grant {
    request: Request,
    id: String,
    secret: Secret,
    scope: Option<String>,
    audience: Option<String>,
    in_body: bool,
}

/// The token, and how many there were: so that a token that was refused is thrown away once, not its successor.
#[derive(Default)]
struct Held {
    token: Option<Token>,
    generation: u64,
}

/// A token, ready to be sent.
#[derive(Clone)]
pub(crate) struct Token {
    header: HeaderValue,
    generation: u64,
    replace_at: Tick,
    expires_at: Tick,
}

impl Token {
    pub(super) fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

impl OAuth2 {
    /// Asks this URL for tokens, showing id and secret as basic authentication.
    pub fn client_credentials(
        token_url: impl AsRef<str>,
        id: impl Into<String>,
        secret: Secret,
    ) -> Result<Self, BadRequest> {
        let request = Request::post(token_url)?
            .header(ACCEPT, "application/json")?
            .header("content-type", "application/x-www-form-urlencoded")?
            .response_bytes_max(ANSWER_MAX)
            .unannounced();
        let grant = Grant { request, id: id.into(), secret, scope: None, audience: None, in_body: false };
        Ok(Self::of(grant))
    }

    fn of(grant: Grant) -> Self {
        let fetching = Singleflight::with_timeout(FETCH_TIMEOUT);
        OAuth2 { inner: Arc::new(Inner { grant, fetching, held: Mutex::default() }) }
    }

    /// Asks for these scopes, separated by spaces.
    #[must_use]
    pub fn scope(self, scope: impl Into<String>) -> Self {
        self.with(|grant| grant.scope = Some(scope.into()))
    }

    /// Asks for a token for this audience, where the server wants one.
    #[must_use]
    pub fn audience(self, audience: impl Into<String>) -> Self {
        self.with(|grant| grant.audience = Some(audience.into()))
    }

    /// Sends id and secret in the body, for servers that do not take basic authentication.
    #[must_use]
    pub fn credentials_in_body(self) -> Self {
        self.with(|grant| grant.in_body = true)
    }

    fn with(self, change: impl FnOnce(&mut Grant)) -> Self {
        let old = &self.inner.grant;
        let request = old.request.try_clone().expect("it has no body yet");
        let mut grant = Grant {
            request,
            id: old.id.clone(),
            secret: old.secret.clone(),
            scope: old.scope.clone(),
            audience: old.audience.clone(),
            in_body: old.in_body,
        };
        change(&mut grant);
        Self::of(grant)
    }

    /// A token that holds for a while, and whether it was at hand. One that holds only a little longer is used if no other can
    /// be had.
    pub(crate) async fn token(&self, client: &HttpClient) -> Result<(Token, bool), HttpError> {
        let (held, generation) = {
            let held = self.lock();
            (held.token.clone(), held.generation)
        };
        let now = client.clock().now();
        if let Some(token) = held.as_ref().filter(|token| now < token.replace_at) {
            return Ok((token.clone(), true));
        }
        let (this, client) = (self.clone(), client.clone());
        let fetch = move || this.fetch(client, generation + 1);
        match self.inner.fetching.run(generation, fetch).await {
            Ok(token) => Ok((token, false)),
            Err(failure) => match held.filter(|token| now < token.expires_at) {
                Some(token) => Ok((token, true)),
                None => Err(Cause::Credentials(Box::new(failure)).into()),
            },
        }
    }

    /// The peer has refused this token: it is not used again.
    pub(crate) fn refused(&self, token: &Token) {
        let mut held = self.lock();
        if held.generation == token.generation {
            held.token = None;
        }
    }

    /// The type is written out because the client that fetches is the client that asks for the token.
    fn fetch(
        self,
        client: HttpClient,
        generation: u64,
    ) -> Pin<Box<dyn Future<Output = Result<Token, BoxError>> + Send>> {
        Box::pin(async move {
            let request = self.inner.grant.request()?;
            let response = client.exchange_once(&request).await?;
            let now = client.clock().now();
            let response = response.good()?;
            let token = read(response.body(), generation, now).ok_or_else(|| NoToken(Fault::protocol()))?;
            let mut held = self.lock();
            *held = Held { token: Some(token.clone()), generation };
            drop(held);
            Ok(token)
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Held> {
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grant {
    fn request(&self) -> Result<Request, BoxError> {
        let mut form = String::from("grant_type=client_credentials");
        let mut add = |name: &str, value: &str| {
            form.push_str(name);
            encode(value, &mut form);
        };
        self.scope.iter().for_each(|scope| add("&scope=", scope));
        self.audience.iter().for_each(|audience| add("&audience=", audience));
        if self.in_body {
            add("&client_id=", &self.id);
            add("&client_secret=", self.secret.expose());
        }
        let request = self.request.try_clone().expect("it has no body yet").body(form);
        if self.in_body {
            return Ok(request);
        }
        // Both are encoded first, as the RFC says in 2.3.1.
        let (mut id, mut secret) = (String::new(), String::new());
        encode(&self.id, &mut id);
        encode(self.secret.expose(), &mut secret);
        Ok(request.auth(Auth::basic(&id, &secret.into())?))
    }
}

/// The token in the answer, or `None` if it is none. What the server says besides is not kept: it may repeat what it was sent.
fn read(body: &[u8], generation: u64, now: Tick) -> Option<Token> {
    let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
    let token = answer.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let life = match answer.get("expires_in") {
        // Some servers write the number as text.
        Some(seconds) => seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok()).map(secs),
        None => None,
    };
    let life = life.unwrap_or(USUAL_LIFE).min(LONGEST_LIFE);
    Some(Token {
        header: sensitive(format!("Bearer {token}")).ok()?,
        generation,
        // A token that lives shorter than that is used for half of its life.
        replace_at: now + life.saturating_sub(EARLY).max(life / 2),
        expires_at: now + life,
    })
}

/// As forms have it.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                into.push(char::from(byte));
            }
            b' ' => into.push('+'),
            _ => drop(write!(into, "%{byte:02X}")),
        }
    }
}

#[derive(Debug)]
struct NoToken(Fault);

impl fmt::Display for NoToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer of the token server has no token")
    }
}

impl std::error::Error for NoToken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl fmt::Debug for OAuth2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth2")
            .field("token_url", &self.inner.grant.request.url().host())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-1: OAuth2 client credentials, as a form and as basic authentication.
    #[test]
    fn adp_1_credentials_are_encoded_before_they_are_sent() {
        let oauth = OAuth2::client_credentials("http://id.example/token", "a:b", "s&p c".into()).unwrap();
        let oauth = oauth.scope("read write").audience("https://api").credentials_in_body();
        let request = oauth.inner.grant.request().unwrap();
        let form = "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi&client_id=a%3Ab\
                    &client_secret=s%26p+c";
        assert_eq!(request.body.bytes().unwrap(), form);
        assert!(!format!("{oauth:?} {request:?}").contains("s&p"));
    }

    /// ADP-1: refreshed before expiry, whatever the server says about it.
    #[test]
    fn adp_1_a_token_is_replaced_before_it_expires() {
        let life = |answer: &str| {
            let token = read(answer.as_bytes(), 1, Tick::from_nanos(0))?;
            Some((token.replace_at.since(Tick::from_nanos(0)), token.expires_at.since(Tick::from_nanos(0))))
        };
        assert_eq!(life(r#"{"access_token":"t","expires_in":3600}"#), Some((secs(3570), secs(3600))));
        assert_eq!(life(r#"{"access_token":"t","expires_in":"20"}"#), Some((secs(10), secs(20))));
        assert_eq!(life(r#"{"access_token":"t"}"#), Some((secs(270), secs(300))));
        assert_eq!(life(r#"{"access_token":"t","expires_in":1e99}"#), Some((secs(270), secs(300))));
        for none in
            ["", "{}", r#"{"access_token":""}"#, r#"{"access_token":7}"#, r#"{"access_token":"a\nb"}"#]
        {
            assert_eq!(life(none), None, "{none}");
        }
    }
}
