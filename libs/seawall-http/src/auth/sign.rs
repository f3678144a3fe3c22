//! Signatures over the body.

use std::fmt;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac as HmacOf, KeyInit, Mac};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use super::{BadAuth, Secret};

/// An HMAC-SHA256 of the body in a header, as many webhooks have it.
///
/// ```
/// # use seawall_http::auth::{Auth, Hmac};
/// // As GitHub does: `X-Hub-Signature-256: sha256=…`.
/// let auth = Auth::hmac(Hmac::new("x-hub-signature-256", &"s3cret".into())?.prefix("sha256="));
/// # Ok::<(), seawall_http::auth::BadAuth>(())
/// ```
#[derive(Clone)]
pub struct Hmac {
    header: HeaderName,
    key: HmacOf<Sha256>,
    prefix: String,
    base64: bool,
}

impl Hmac {
    /// In hexadecimal digits, in this header.
    pub fn new(header: impl AsRef<str>, key: &Secret) -> Result<Self, BadAuth> {
        let header = super::header_name(header.as_ref())?;
        Ok(Hmac { header, key: keyed(key.expose().as_bytes()), prefix: String::new(), base64: false })
    }

    /// In base 64 instead.
    #[must_use]
    pub fn base64(mut self) -> Self {
        self.base64 = true;
        self
    }

    /// With this before it.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    pub(super) fn apply(&self, headers: &mut HeaderMap, body: &[u8]) -> Result<(), BadAuth> {
        let code = code(&self.key, &[body]);
        let mut value = self.prefix.clone();
        if self.base64 {
            STANDARD.encode_string(code, &mut value);
        } else {
            value.extend(code.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]));
        }
        headers.insert(&self.header, super::sensitive(value)?);
        Ok(())
    }
}

/// The signature of [Standard Webhooks](https://www.standardwebhooks.com): over id, time and body, with every key that is in
/// use, so that keys can be changed while both are known.
#[derive(Clone)]
pub struct Webhook {
    keys: Vec<HmacOf<Sha256>>,
}

pub(super) static WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
static WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
static WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

impl Webhook {
    /// With these keys, written `whsec_` and base 64. The first is the newest.
    pub fn new(keys: impl IntoIterator<Item = Secret>) -> Result<Self, BadAuth> {
        let read = |key: Secret| {
            let text = key.expose();
            let text = text.strip_prefix("whsec_").unwrap_or(text);
            STANDARD.decode(text).map(|bytes| keyed(&bytes)).map_err(|_| BadAuth::WebhookKey)
        };
        let keys: Vec<_> = keys.into_iter().map(read).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(BadAuth::WebhookKey) } else { Ok(Webhook { keys }) }
    }

    /// `id` is that of the message and the same for all its attempts; `now` is that of the attempt.
    pub(super) fn apply(
        &self,
        headers: &mut HeaderMap,
        id: HeaderValue,
        now: SystemTime,
        body: &[u8],
    ) -> Result<(), BadAuth> {
        let seconds = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let stamp = seconds.to_string();
        let mut value = String::new();
        for key in &self.keys {
            let code = code(key, &[id.as_bytes(), b".", stamp.as_bytes(), b".", body]);
            value.push_str(if value.is_empty() { "v1," } else { " v1," });
            STANDARD.encode_string(code, &mut value);
        }
        headers.insert(&WEBHOOK_ID, id);
        headers.insert(&WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
        headers.insert(&WEBHOOK_SIGNATURE, super::sensitive(value)?);
        Ok(())
    }
}

fn keyed(key: &[u8]) -> HmacOf<Sha256> {
    HmacOf::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn code(key: &HmacOf<Sha256>, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = key.clone();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn hex(nibble: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(nibble)])
}

impl fmt::Debug for Hmac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hmac").field("header", &self.header).finish_non_exhaustive()
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("keys", &self.keys.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// ADP-1: HMAC, against GitHub's published example.
    #[test]
    fn adp_1_an_hmac_is_what_others_compute() {
        let secret = || Secret::new("It's a Secret to Everybody");
        let mut headers = HeaderMap::new();
        let hmac = Hmac::new("x-hub-signature-256", &secret()).unwrap().prefix("sha256=");
        hmac.apply(&mut headers, b"Hello, World!").unwrap();
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(headers["x-hub-signature-256"], expected);
        assert!(headers["x-hub-signature-256"].is_sensitive());
        let hmac = Hmac::new("x-signature", &secret()).unwrap().base64();
        hmac.apply(&mut headers, b"Hello, World!").unwrap();
        assert_eq!(headers["x-signature"], "dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc=");
    }

    /// ADP-1: Standard Webhooks, against the example of its specification.
    #[test]
    fn adp_1_a_webhook_is_signed_as_the_standard_says() {
        let webhook = Webhook::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()]).unwrap();
        let mut headers = HeaderMap::new();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        let id = HeaderValue::from_static("msg_p5jXN8AQM9LWM0D4loKWxJek");
        webhook.apply(&mut headers, id, now, br#"{"test": 2432232314}"#).unwrap();
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        assert!(Webhook::new([]).is_err() && Webhook::new(["whsec_!".into()]).is_err());
    }
}
