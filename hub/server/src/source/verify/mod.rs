//! Whether an inbound webhook comes from who has the secret.
//!
//! | scheme | header | what is signed | how it is written |
//! |---|---|---|---|
//! | `standard-webhooks` | `webhook-signature` | `id.timestamp.body` | `v1,` and base 64; several with spaces between |
//! | `github` | `x-hub-signature-256` | the body | `sha256=` and hexadecimal digits |
//! | `stripe` | `stripe-signature` | `t.body` | `t=…,v1=…`, hexadecimal; several `v1` |
//! | `slack` | `x-slack-signature` | `v0:timestamp:body` | `v0=` and hexadecimal digits |
//! | `hmac` | yours | the body | your prefix, hexadecimal digits or base 64 |
//! | `bearer` | `authorization` | nothing | `Bearer` and the token |
//!
//! All of them are HMAC-SHA256. There is no SHA-1, although GitHub still sends one beside it.
//!
//! **Why strict?** A header that stands twice, a signature that is written in a way nobody writes it, an id with a dot
//! in it: two programs may read such a request in two ways, and the second one may not be the one that was signed. A
//! sender that follows its own documentation never does any of it.
//!
//! **No time, no replay protection.** What `github`, `hmac` and `bearer` send has no time in what is signed, so it is
//! valid for ever and nothing tells a replay from a second message that says the same. They have no
//! [`replay_key`](VerifiedRequest::replay_key): refusing equal bodies would lose the second of two honest updates. There the
//! id of the event is all that keeps it from happening twice, and of GitHub's id anybody who has the request can make
//! another one.

mod keys;
mod read;
mod refused;
mod scheme;
#[cfg(test)]
mod tests;

pub use refused::{SchemeError, VerifyError};
pub use scheme::{Encoding, HmacFormat, Scheme, SchemeSettings};

use std::fmt;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use seawall_http::Secret;
use seawall_hub_core::domain::time::Millis;
use sha2::{Digest, Sha256};

use self::keys::Keys;
use self::read::{decoded, fresh, one, one_or_none};
use self::refused::VerifyFailure;

/// How far a signed time may be from ours, before and after: clocks differ, and requests wait in queues.
pub const TOLERANCE: Duration = Duration::from_mins(5);

/// How many signatures one request may have. A sender signs with each secret that it has, which are two at most times;
/// each one costs us a comparison.
const SIGNATURES_MAX: usize = 16;

static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
static GITHUB_DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");
static GITHUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
static STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");
static SLACK_SIGNATURE: HeaderName = HeaderName::from_static("x-slack-signature");
static SLACK_TIMESTAMP: HeaderName = HeaderName::from_static("x-slack-request-timestamp");

/// Checks the requests of one source. It has a secret, always: without one there is no verifier.
#[derive(Clone)]
pub struct Verifier {
    scheme: Scheme,
    keys: Keys,
}

/// A request as it came: the body's bytes before anybody has read them as anything.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// The body of the request.
    pub body: &'a [u8],
}

/// What is known about a request that is in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedRequest {
    /// What the sender calls the message, where the scheme says it: `webhook-id`, which is signed, or
    /// `x-github-delivery`, which is not. The same for every attempt to send it.
    pub message: Option<String>,
    /// What must not be seen twice while its time is good. Made of what is signed, and not of how the signature is
    /// written, so that no other spelling of the same request has another key. An honest second attempt has another
    /// time and so another key. Does not name the source: each has a [`ReplayCache`](super::ReplayCache) of its own.
    pub replay_key: Option<[u8; 32]>,
}

impl Verifier {
    /// Several secrets are for changing them while both are in use; one that fits is enough.
    pub fn new(scheme: Scheme, secrets: impl IntoIterator<Item = Secret>) -> Result<Self, SchemeError> {
        let keys = Keys::new(&scheme, secrets)?;
        Ok(Verifier { scheme, keys })
    }

    /// Whether this request is in order at this time.
    pub fn check(&self, request: &SignedRequest<'_>, now: Millis) -> Result<VerifiedRequest, VerifyError> {
        match &self.scheme {
            Scheme::Bearer => self.bearer(request),
            Scheme::Hmac(plain) => {
                self.over_body(request, &plain.header, &plain.prefix, plain.encoding)?;
                Ok(VerifiedRequest { message: None, replay_key: None })
            }
            Scheme::StandardWebhooks => self.standard_webhooks(request, now),
            Scheme::GitHub => {
                self.over_body(request, &GITHUB_SIGNATURE, "sha256=", Encoding::Hex)?;
                let message = one_or_none(request.headers, &GITHUB_DELIVERY)?.map(str::to_owned);
                Ok(VerifiedRequest { message, replay_key: None })
            }
            Scheme::Stripe => self.stripe(request, now),
            Scheme::Slack => self.slack(request, now),
        }
    }

    fn bearer(&self, request: &SignedRequest<'_>) -> Result<VerifiedRequest, VerifyError> {
        let value = one(request.headers, &AUTHORIZATION)?;
        let token = match value.split_once(' ') {
            Some((word, token)) if word.eq_ignore_ascii_case("bearer") => token,
            _ => return Err(VerifyFailure::Form(AUTHORIZATION, "`Bearer` and the token").into()),
        };
        if self.keys.have_token(token) {
            Ok(VerifiedRequest { message: None, replay_key: None })
        } else {
            Err(VerifyFailure::Other(AUTHORIZATION).into())
        }
    }

    fn over_body(
        &self,
        request: &SignedRequest<'_>,
        header: &HeaderName,
        prefix: &str,
        encoding: Encoding,
    ) -> Result<(), VerifyError> {
        let form =
            || VerifyFailure::Form(header.clone(), "its prefix and 32 bytes, whole and nothing after them");
        let text = one(request.headers, header)?.strip_prefix(prefix).ok_or_else(form)?;
        let signature = decoded(text, encoding).ok_or_else(form)?;
        self.signed(header, &[signature], &[request.body])
    }

    fn standard_webhooks(
        &self,
        request: &SignedRequest<'_>,
        now: Millis,
    ) -> Result<VerifiedRequest, VerifyError> {
        let id = one(request.headers, &WEBHOOK_ID)?;
        // The dots are what separates the parts that are signed: an id with one could take over a piece of the body.
        if id.contains('.') {
            return Err(VerifyFailure::Form(WEBHOOK_ID.clone(), "an id without a dot").into());
        }
        let stamp = one(request.headers, &WEBHOOK_TIMESTAMP)?;
        fresh(&WEBHOOK_TIMESTAMP, stamp, now)?;
        let list = one(request.headers, &WEBHOOK_SIGNATURE)?;
        // Other versions are other ways to sign, for receivers that know them.
        let texts = list.split(' ').filter_map(|entry| entry.strip_prefix("v1,"));
        let signatures = several(&WEBHOOK_SIGNATURE, "`v1,` and base 64", texts, Encoding::Base64)?;
        let parts = [id.as_bytes(), b".", stamp.as_bytes(), b".", request.body];
        self.signed(&WEBHOOK_SIGNATURE, &signatures, &parts)?;
        Ok(VerifiedRequest { message: Some(id.to_owned()), replay_key: Some(key(&parts)) })
    }

    fn stripe(&self, request: &SignedRequest<'_>, now: Millis) -> Result<VerifiedRequest, VerifyError> {
        let form = "`t=` and a time, `v1=` and hexadecimal digits, with commas between";
        let list = one(request.headers, &STRIPE_SIGNATURE)?;
        let mut stamps = list.split(',').filter_map(|entry| entry.strip_prefix("t="));
        let (Some(stamp), None) = (stamps.next(), stamps.next()) else {
            return Err(VerifyFailure::Form(STRIPE_SIGNATURE.clone(), form).into());
        };
        fresh(&STRIPE_SIGNATURE, stamp, now)?;
        // `v0` is a signature for tests that proves nothing.
        let texts = list.split(',').filter_map(|entry| entry.strip_prefix("v1="));
        let signatures = several(&STRIPE_SIGNATURE, form, texts, Encoding::Hex)?;
        let parts = [stamp.as_bytes(), b".", request.body];
        self.signed(&STRIPE_SIGNATURE, &signatures, &parts)?;
        Ok(VerifiedRequest { message: None, replay_key: Some(key(&parts)) })
    }

    fn slack(&self, request: &SignedRequest<'_>, now: Millis) -> Result<VerifiedRequest, VerifyError> {
        let form = || VerifyFailure::Form(SLACK_SIGNATURE.clone(), "`v0=` and 64 hexadecimal digits");
        let stamp = one(request.headers, &SLACK_TIMESTAMP)?;
        fresh(&SLACK_TIMESTAMP, stamp, now)?;
        let text = one(request.headers, &SLACK_SIGNATURE)?.strip_prefix("v0=").ok_or_else(form)?;
        let signature = decoded(text, Encoding::Hex).ok_or_else(form)?;
        let parts = [b"v0:", stamp.as_bytes(), b":", request.body];
        self.signed(&SLACK_SIGNATURE, &[signature], &parts)?;
        Ok(VerifiedRequest { message: None, replay_key: Some(key(&parts)) })
    }

    fn signed(
        &self,
        header: &HeaderName,
        signatures: &[[u8; 32]],
        parts: &[&[u8]],
    ) -> Result<(), VerifyError> {
        if self.keys.have_signed(parts, signatures) {
            Ok(())
        } else {
            Err(VerifyFailure::Other(header.clone()).into())
        }
    }
}

/// The signatures of a list. One that can't be read is like one that does not fit: another may.
fn several<'a>(
    header: &HeaderName,
    form: &'static str,
    texts: impl Iterator<Item = &'a str>,
    encoding: Encoding,
) -> Result<Vec<[u8; 32]>, VerifyError> {
    let mut signatures = Vec::new();
    for (count, text) in texts.enumerate() {
        if count == SIGNATURES_MAX {
            return Err(VerifyFailure::TooMany(header.clone()).into());
        }
        signatures.extend(decoded(text, encoding));
    }
    if signatures.is_empty() { Err(VerifyFailure::Form(header.clone(), form).into()) } else { Ok(signatures) }
}

/// Each part with its length, so that no two lists of parts are the same bytes.
fn key(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
