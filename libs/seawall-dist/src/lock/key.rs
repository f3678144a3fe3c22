//! The name of a lock.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The maximum length of a key in bytes: a key is a name and not a document.
pub const KEY_LENGTH_MAX: usize = 512;

/// What stands before the user in the key of a user's transactions.
pub const USER_TRANSACTION: &str = "lock:transaction:user:";

/// The number of segments that follow `lock`: what is locked stands before the id of the one that is locked.
const SEGMENTS_MIN: usize = 3;

/// The key of a lock: `lock:` and at least three segments.
///
/// Two parts of a program that mean different things never take the same lock by chance, because the domain and the resource
/// stand before the id.
///
/// ```
/// use seawall_dist::lock::LockKey;
/// let key = LockKey::new("lock:order:create:buyer:456")?;
/// assert_eq!(key.as_str(), "lock:order:create:buyer:456");
/// let error = LockKey::new("order:456").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the lock key `order:456` does not begin with `lock:`; write it like `lock:transaction:user:123`",
/// );
/// # Ok::<(), seawall_dist::lock::LockKeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockKey(Arc<str>);

impl LockKey {
    /// Checks a key.
    pub fn new(key: impl AsRef<str>) -> Result<LockKey, LockKeyError> {
        let key = key.as_ref();
        let wrong = |problem| LockKeyError { key: shortened(key), problem };
        let Some(segments) = key.strip_prefix("lock:") else { return Err(wrong(Problem::Prefix)) };
        if key.len() > KEY_LENGTH_MAX {
            return Err(wrong(Problem::TooLong));
        }
        if key.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(wrong(Problem::Blank));
        }
        let mut count = 0;
        for segment in segments.split(':') {
            if segment.is_empty() {
                return Err(wrong(Problem::EmptySegment));
            }
            count += 1;
        }
        if count < SEGMENTS_MIN {
            return Err(wrong(Problem::TooFewSegments(count)));
        }
        Ok(LockKey(key.into()))
    }

    /// The key of all transactions of a user: `lock:transaction:user:{id}`.
    pub fn user_transaction(user: impl fmt::Display) -> Result<LockKey, LockKeyError> {
        LockKey::new(format!("{USER_TRANSACTION}{user}"))
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl TryFrom<&str> for LockKey {
    type Error = LockKeyError;

    fn try_from(key: &str) -> Result<LockKey, LockKeyError> {
        LockKey::new(key)
    }
}

impl TryFrom<String> for LockKey {
    type Error = LockKeyError;

    fn try_from(key: String) -> Result<LockKey, LockKeyError> {
        LockKey::new(key)
    }
}

impl TryFrom<&String> for LockKey {
    type Error = LockKeyError;

    fn try_from(key: &String) -> Result<LockKey, LockKeyError> {
        LockKey::new(key)
    }
}

impl TryFrom<&LockKey> for LockKey {
    type Error = LockKeyError;

    fn try_from(key: &LockKey) -> Result<LockKey, LockKeyError> {
        Ok(key.clone())
    }
}

/// A text is not a [`LockKey`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockKeyError {
    key: String,
    problem: Problem,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Problem {
    Prefix,
    TooLong,
    Blank,
    EmptySegment,
    TooFewSegments(usize),
}

impl fmt::Display for LockKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lock key `{}` ", self.key)?;
        match self.problem {
            Problem::Prefix => f.write_str("does not begin with `lock:`")?,
            Problem::TooLong => write!(f, "is longer than {KEY_LENGTH_MAX} bytes")?,
            Problem::Blank => f.write_str("contains a blank or a control character")?,
            Problem::EmptySegment => f.write_str("has an empty segment")?,
            Problem::TooFewSegments(count) => {
                write!(f, "has {count} of at least {SEGMENTS_MIN} segments after `lock:`")?;
            }
        }
        f.write_str("; write it like `lock:transaction:user:123`")
    }
}

impl Error for LockKeyError {}

/// A key as it stands in an error: on one line, and not longer than a line.
fn shortened(key: &str) -> String {
    const SHOWN_MAX: usize = 80;
    let mut shown: String = key.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if key.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}
