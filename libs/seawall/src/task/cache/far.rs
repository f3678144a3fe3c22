//! The far tier: a cache that processes share.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// What a far tier answers, later.
pub type FarFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, FarError>> + Send + 'a>>;

/// Trouble with the far tier. A cache takes it for a miss.
#[derive(Debug)]
pub struct FarError(Box<dyn Error + Send + Sync>);

impl FarError {
    /// Because of this.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        FarError(cause.into())
    }
}

impl fmt::Display for FarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the far tier did not answer: {}", self.0)
    }
}

impl Error for FarError {}

/// A cache that processes share, like Redis.
///
/// # Leases
/// A reader that finds nothing gets a lease, loads, and stores with that lease. An invalidation in between takes the lease
/// away, and the store is refused: without that, a slow reader would put the old value back after it was invalidated, for
/// as long as the entry lives.
pub trait Far: Send + Sync + 'static {
    /// What is there of at least this version and how long it still lives, or the lease to put something there.
    ///
    /// Nothing is of version [`u64::MAX`], so that asks for the lease alone.
    fn get<'a>(&'a self, key: &'a str, version: u64) -> FarFuture<'a, FarLook>;

    /// Keeps an entry for this long, if the lease still stands and nothing newer is there; says whether it was kept.
    fn set<'a>(&'a self, key: &'a str, entry: FarEntry, ttl: Duration, lease: u64) -> FarFuture<'a, bool>;

    /// Forgets an entry, takes its leases away, and tells everybody who [listens](Far::listen).
    fn delete<'a>(&'a self, key: &'a str) -> FarFuture<'a, ()>;

    /// Hears of everything that is deleted from now on, by whichever process.
    fn listen(&self) -> Box<dyn Ear>;
}

/// What a far tier has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FarLook {
    /// This, which lives for so long from now on. Near it must not live longer, or what age mends would take twice as long.
    Hit(FarEntry, Duration),
    /// Nothing; this lease is for whoever loads it.
    Miss(u64),
}

/// An entry as it is kept outside of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FarEntry {
    /// The value, encoded; nothing, if it is known that there is none.
    pub value: Option<Vec<u8>>,
    /// Its version, zero where there are none.
    pub version: u64,
}

/// The first byte of an entry in bytes.
const NOT_FOUND: u8 = 0;
const FOUND: u8 = 1;

impl FarEntry {
    /// In bytes: what it is, its version, its value.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, value) = self.value.as_ref().map_or((NOT_FOUND, &[][..]), |value| (FOUND, value));
        let mut bytes = Vec::with_capacity(9 + value.len());
        bytes.push(kind);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(value);
        bytes
    }

    /// Back from bytes, if they are an entry.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (version, value) = rest.split_first_chunk::<8>()?;
        let value = match *kind {
            NOT_FOUND if value.is_empty() => None,
            FOUND => Some(value.to_vec()),
            _ => return None,
        };
        Some(FarEntry { value, version: u64::from_le_bytes(*version) })
    }
}

/// Hears what is deleted from a far tier.
pub trait Ear: Send {
    /// What comes next. An error means that the far tier is gone for good.
    fn hear(&mut self) -> FarFuture<'_, Heard>;
}

/// What an [`Ear`] hears.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Heard {
    /// This key was deleted.
    Deleted(String),
    /// Something was missed: anything may have been deleted.
    Missed,
}

/// How values are kept outside of the process.
pub trait Codec<V>: Send + Sync + 'static {
    /// A value as bytes.
    fn encode(&self, value: &V) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

    /// Back from bytes. An error makes the entry a miss.
    fn decode(&self, bytes: &[u8]) -> Result<V, Box<dyn Error + Send + Sync>>;
}

/// Text and bytes as they are.
#[derive(Clone, Copy, Debug)]
pub struct AsIs;

impl Codec<String> for AsIs {
    fn encode(&self, value: &String) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(value.as_bytes().to_vec())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(String::from_utf8(bytes.to_vec())?)
    }
}

impl Codec<Vec<u8>> for AsIs {
    fn encode(&self, value: &Vec<u8>) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(value.clone())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(bytes.to_vec())
    }
}
