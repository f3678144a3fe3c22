//! Credentials, added to a request last of all: evidence of an attempt is taken before.

mod oauth;
mod secret;
mod sign;

pub use oauth::OAuth2;
pub(crate) use oauth::Token;
pub use secret::Secret;
pub use sign::{Hmac, Webhook};

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::error::{BadRequest, Cause, HttpError};
use crate::header;
use crate::request::Request;

/// How a request shows who sends it. A handle: clones share their tokens. It belongs to a request, not to a client: a client
/// that adds credentials by itself sends them to whoever is called.
#[derive(Clone, Debug)]
pub struct Auth(Kind);

#[derive(Clone, Debug)]
enum Kind {
    None,
    Header(Arc<(HeaderName, Hidden)>),
    Hmac(Arc<Hmac>),
    Webhook(Arc<Webhook>),
    OAuth2(OAuth2),
}

#[derive(Clone)]
struct Hidden(HeaderValue);

impl Auth {
    /// No credentials.
    #[must_use]
    pub fn none() -> Self {
        Auth(Kind::None)
    }

    /// `Authorization: Bearer …`.
    pub fn bearer(token: &Secret) -> Result<Self, BadAuth> {
        Self::of(AUTHORIZATION, format!("Bearer {}", token.expose()))
    }

    /// `Authorization: Basic …`. A user with a colon can't be told apart from its password.
    pub fn basic(user: &str, password: &Secret) -> Result<Self, BadAuth> {
        if user.contains(':') {
            return Err(BadAuth::User);
        }
        let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
        Self::of(AUTHORIZATION, format!("Basic {pair}"))
    }

    /// A key in a header of this name, such as `X-Api-Key`.
    pub fn header(name: impl AsRef<str>, key: &Secret) -> Result<Self, BadAuth> {
        Self::of(header_name(name.as_ref())?, key.expose().to_owned())
    }

    /// An HMAC of the body.
    #[must_use]
    pub fn hmac(hmac: Hmac) -> Self {
        Auth(Kind::Hmac(Arc::new(hmac)))
    }

    /// A signature as Standard Webhooks has it. The message's id is the request's header `webhook-id`, or else the key of the
    /// call.
    #[must_use]
    pub fn webhook(webhook: Webhook) -> Self {
        Auth(Kind::Webhook(Arc::new(webhook)))
    }

    /// A token that is fetched with client credentials, and fetched anew before it expires.
    #[must_use]
    pub fn oauth2(oauth2: OAuth2) -> Self {
        Auth(Kind::OAuth2(oauth2))
    }

    fn of(name: HeaderName, value: String) -> Result<Self, BadAuth> {
        Ok(Auth(Kind::Header(Arc::new((name, Hidden(sensitive(value)?))))))
    }

    /// Who fetches tokens, if anybody does.
    pub(crate) fn tokens(&self) -> Option<&OAuth2> {
        match &self.0 {
            Kind::OAuth2(oauth2) => Some(oauth2),
            _ => None,
        }
    }

    /// Adds what it has to the headers of an attempt. `id` names the call, `now` is asked for only where it is signed.
    pub(crate) fn apply(
        &self,
        headers: &mut HeaderMap,
        request: &Request,
        token: Option<&Token>,
        id: impl FnOnce() -> HeaderValue,
        now: impl FnOnce() -> SystemTime,
    ) -> Result<(), HttpError> {
        let signed = || request.body.bytes().ok_or(Cause::Request(BadRequest::BodyNotSigned));
        let unfit = |error: BadAuth| HttpError::from(Cause::Credentials(error.into()));
        match &self.0 {
            Kind::None => Ok(()),
            Kind::Header(header) => {
                headers.insert(&header.0, header.1.0.clone());
                Ok(())
            }
            Kind::Hmac(hmac) => hmac.apply(headers, signed()?).map_err(unfit),
            Kind::Webhook(webhook) => {
                let id = headers.get(&sign::WEBHOOK_ID).cloned().unwrap_or_else(id);
                webhook.apply(headers, id, now(), signed()?).map_err(unfit)
            }
            Kind::OAuth2(_) => {
                let token = token.expect("the token is fetched before the request is built");
                headers.insert(AUTHORIZATION, token.header());
                Ok(())
            }
        }
    }
}

fn header_name(name: &str) -> Result<HeaderName, BadAuth> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BadAuth::Header)?;
    if header::is_ours(&name) { Err(BadAuth::Header) } else { Ok(name) }
}

/// A value that no log shows.
fn sensitive(value: String) -> Result<HeaderValue, BadAuth> {
    let mut value = HeaderValue::try_from(value).map_err(|_| BadAuth::Value)?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Why credentials can't be used. Says nothing about what they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BadAuth {
    /// The header's name is none, or is one that the client itself sets.
    Header,
    /// The value has characters that no header may have.
    Value,
    /// The user has a colon.
    User,
    /// A key of a webhook is not in base 64, or there is none.
    WebhookKey,
}

impl fmt::Display for BadAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadAuth::Header => "the header for the credentials is none, or is made by the client itself",
            BadAuth::Value => "the credentials have characters that no header may have",
            BadAuth::User => "the user of basic authentication has a colon",
            BadAuth::WebhookKey => {
                "the keys of a webhook are written `whsec_` and base 64, and there is at least one"
            }
        })
    }
}

impl std::error::Error for BadAuth {}
