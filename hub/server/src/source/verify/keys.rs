//! Secrets, ready to be compared with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use seawall_http::Secret;
use sha2::Sha256;

use super::{Scheme, SchemeError};

/// More secrets than anybody changes at once; each costs a hash of the body for a request that nobody signed.
const SECRETS_MAX: usize = 16;

/// Never empty, and none of them is.
#[derive(Clone)]
pub(super) enum Keys {
    /// Hashes of tokens.
    Tokens(Vec<[u8; 32]>),
    Signing(Vec<Hmac<Sha256>>),
}

impl Keys {
    pub(super) fn new(
        scheme: &Scheme,
        secrets: impl IntoIterator<Item = Secret>,
    ) -> Result<Self, SchemeError> {
        let secrets: Vec<Secret> = secrets.into_iter().take(SECRETS_MAX + 1).collect();
        if secrets.is_empty() {
            return Err(SchemeError::NoSecret);
        }
        if secrets.len() > SECRETS_MAX {
            return Err(SchemeError::TooManySecrets);
        }
        let texts = secrets.iter().map(|secret| sound(secret.expose()));
        Ok(match scheme {
            Scheme::Bearer => Keys::Tokens(texts.map(|text| token(text?)).collect::<Result<_, _>>()?),
            Scheme::StandardWebhooks => {
                Keys::Signing(texts.map(|text| standard(text?)).collect::<Result<_, _>>()?)
            }
            Scheme::Hmac(_) | Scheme::GitHub | Scheme::Stripe | Scheme::Slack => {
                Keys::Signing(texts.map(|text| Ok(keyed(text?.as_bytes()))).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Whether one of these signatures over these parts is by one of the keys. The comparison is the library's, so it
    /// takes as long for a signature that is nearly right.
    pub(super) fn have_signed(&self, parts: &[&[u8]], signatures: &[[u8; 32]]) -> bool {
        let Keys::Signing(keys) = self else { return false };
        keys.iter().any(|key| {
            let mut code = key.clone();
            for part in parts {
                code.update(part);
            }
            signatures.iter().any(|signature| code.clone().verify_slice(signature).is_ok())
        })
    }

    pub(super) fn have_token(&self, given: &str) -> bool {
        let Keys::Tokens(known) = self else { return false };
        let given = hash(given);
        known.iter().any(|known| given.clone().verify_slice(known).is_ok())
    }
}

/// A space or an end of line at the edge came from a file or a form, and nobody signs with it.
fn sound(text: &str) -> Result<&str, SchemeError> {
    if text.is_empty() {
        return Err(SchemeError::NoSecret);
    }
    if text.trim() != text {
        Err(SchemeError::Secret("must not start or end with white space"))
    } else {
        Ok(text)
    }
}

fn token(text: &str) -> Result<[u8; 32], SchemeError> {
    if text.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(hash(text).finalize().into_bytes().into())
    } else {
        Err(SchemeError::Secret(
            "a token must consist of visible ASCII characters, so that it fits in a header",
        ))
    }
}

fn standard(text: &str) -> Result<Hmac<Sha256>, SchemeError> {
    let bytes = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text));
    match bytes.as_deref() {
        Err(_) => Err(SchemeError::Secret("must be `whsec_` and base64")),
        Ok([]) => Err(SchemeError::NoSecret),
        Ok(key) => Ok(keyed(key)),
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Under a key, though a public one: what is compared is not the plain hash of a token that others may hold too.
fn hash(token: &str) -> Hmac<Sha256> {
    let mut hash = keyed(b"seawall source token");
    hash.update(token.as_bytes());
    hash
}
