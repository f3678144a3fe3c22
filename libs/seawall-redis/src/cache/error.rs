//! The mistakes of a caller of the cache. A store that is away is none of them.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::adapter::{KEY_CHARS_MAX, TTL_MAX};

/// A request to a [`RedisCache`](super::RedisCache) that can't be right, however the store is.
#[derive(Debug)]
#[non_exhaustive]
pub enum CacheError {
    /// The key is empty.
    EmptyKey,
    /// The key has more than [`KEY_CHARS_MAX`] characters.
    LongKey {
        /// The number of characters.
        chars: usize,
    },
    /// There is no value to store.
    AbsentValue,
    /// The lifetime is zero or longer than [`TTL_MAX`].
    InvalidTtl(Duration),
    /// The codec could not encode the value.
    Encoding(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheError::EmptyKey => f.write_str("the cache key is empty"),
            CacheError::LongKey { chars } => {
                write!(f, "the cache key has {chars} characters, and at most {KEY_CHARS_MAX} are allowed")
            }
            CacheError::AbsentValue => f.write_str("the cache value is absent"),
            CacheError::InvalidTtl(ttl) => {
                write!(f, "the lifetime {ttl:?} is not between 1 ns and {} days", TTL_MAX.as_secs() / 86_400)
            }
            CacheError::Encoding(_) => f.write_str("the cache value can't be encoded"),
        }
    }
}

impl Error for CacheError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CacheError::Encoding(cause) => Some(&**cause),
            _ => None,
        }
    }
}
