//! The key under which work happens once.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::machine::Fingerprint;

/// The longest key and the longest scope, in bytes: what databases index well, and what Stripe allows.
pub const KEY_BYTES_MAX: usize = 255;

const SCOPE: &str = "scope of the idempotency key";
const KEY: &str = "text of the idempotency key";
const NO_ID: &str =
    "is empty: let the producer set one, or use a hash of the payload if equal payloads are one message";

/// A key with its scope. A key of one scope never meets a key of another.
///
/// The scope is the tenant's id, or the name of a consumer. It is not the tenant's API token: a rotated token would make the
/// tenant's keys new ones.
///
/// ```
/// use seawall_dist::idempotency::IdempotencyKey;
/// let key = IdempotencyKey::new("tenant-7", "order-42")?;
/// assert_eq!((key.scope(), key.key()), ("tenant-7", "order-42"));
/// assert!(IdempotencyKey::new("tenant-7", "").is_err());
/// # Ok::<(), seawall_dist::idempotency::InvalidKey>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IdempotencyKey {
    scope: Arc<str>,
    key: Arc<str>,
}

impl IdempotencyKey {
    /// Makes a key of a scope. The scope may be empty; the key may not. Both have at most [`KEY_BYTES_MAX`] bytes and no
    /// control characters.
    pub fn new(scope: &str, key: &str) -> Result<Self, InvalidKey> {
        match (check(scope), check(key), key.is_empty()) {
            (Some(reason), ..) => Err(InvalidKey { part: SCOPE, reason }),
            (_, Some(reason), _) => Err(InvalidKey { part: KEY, reason }),
            (_, _, true) => Err(InvalidKey { part: KEY, reason: "is empty" }),
            _ => Ok(IdempotencyKey { scope: scope.into(), key: key.into() }),
        }
    }

    /// Makes a key of the text that identifies a message. A text that is no valid key is replaced by its SHA-256. An empty one
    /// is refused: all messages without an id would be duplicates of the first.
    pub(super) fn of_message(scope: &Arc<str>, id: &str) -> Result<Self, InvalidKey> {
        if id.is_empty() {
            return Err(InvalidKey { part: "id of the message", reason: NO_ID });
        }
        let valid = check(id).is_none();
        let key = if valid { id.into() } else { format!("sha256:{}", hex(&Sha256::digest(id))).into() };
        Ok(IdempotencyKey { scope: scope.clone(), key })
    }

    /// The scope, such as the tenant's id.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// The key within its scope.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scope.is_empty() { f.write_str(&self.key) } else { write!(f, "{}/{}", self.scope, self.key) }
    }
}

/// What is wrong with a part of a key, if something is.
fn check(part: &str) -> Option<&'static str> {
    if part.len() > KEY_BYTES_MAX {
        return Some("is longer than 255 bytes");
    }
    part.chars().any(char::is_control).then_some("has a control character")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A text that can't be an [`IdempotencyKey`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidKey {
    part: &'static str,
    reason: &'static str,
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {}", self.part, self.reason)
    }
}

impl std::error::Error for InvalidKey {}

/// The fingerprint of a request: SHA-256 over its parts, each with its length before it, so that `["ab", "c"]` and
/// `["a", "bc"]` differ.
///
/// ```
/// use seawall_dist::idempotency::fingerprint;
/// let body = br#"{"amount":5}"#;
/// let first = fingerprint([b"POST".as_slice(), b"/payments", body]);
/// assert_ne!(first, fingerprint([b"POST".as_slice(), b"/pay", b"ments", body]));
/// ```
#[must_use]
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
