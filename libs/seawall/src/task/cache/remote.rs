//! The interface to a remote cache: a cache that several processes share.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The future that every method of [`RemoteCache`] returns.
pub type RemoteFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RemoteError>> + Send + 'a>>;

/// A remote cache could not answer. A [`Cache`](super::Cache) treats this error as a miss.
#[derive(Debug)]
pub struct RemoteError(Box<dyn Error + Send + Sync>);

impl RemoteError {
    /// Creates an error with this cause.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        RemoteError(cause.into())
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the remote cache did not answer: {}", self.0)
    }
}

impl Error for RemoteError {}

/// A cache that several processes share, such as Redis. Implement this trait to connect a [`Cache`](super::Cache) to one.
///
/// # Leases
/// A reader that finds nothing gets a lease, loads the value, and stores it with that lease. An invalidation in between
/// revokes the lease, and the remote cache refuses the store. Without leases, a slow reader could store the old value again
/// after its invalidation, and the old value would stay until the entry expires.
pub trait RemoteCache: Send + Sync + 'static {
    /// Looks for an entry of at least this version. Returns the entry with its remaining lifetime, or a lease to store one.
    ///
    /// No entry has the version [`u64::MAX`], so a caller that passes it asks for the lease alone.
    fn get<'a>(&'a self, key: &'a str, version: u64) -> RemoteFuture<'a, RemoteLookup>;

    /// Stores an entry for this long, if the lease is still valid and no newer entry is there. Returns true if it stored the
    /// entry.
    fn set<'a>(
        &'a self,
        key: &'a str,
        entry: RemoteEntry,
        ttl: Duration,
        lease: u64,
    ) -> RemoteFuture<'a, bool>;

    /// Deletes an entry, revokes its leases, and notifies every [listener](RemoteCache::listen).
    fn delete<'a>(&'a self, key: &'a str) -> RemoteFuture<'a, ()>;

    /// Subscribes to every deletion from now on, by any process.
    fn listen(&self) -> Box<dyn InvalidationListener>;
}

/// The answer of a [`RemoteCache`] to [`get`](RemoteCache::get).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RemoteLookup {
    /// The remote cache holds this entry, and the entry lives for this much longer. A local copy must not live longer than
    /// that.
    Hit(RemoteEntry, Duration),
    /// The remote cache holds no such entry. The caller may load the value and store it with this lease.
    Miss(u64),
}

/// An entry as a [`RemoteCache`] stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RemoteEntry {
    /// The encoded value; `None` records that the value does not exist.
    pub value: Option<Vec<u8>>,
    /// The version of the value; zero where values have no versions.
    pub version: u64,
}

/// The first byte of an entry in bytes.
const NOT_FOUND: u8 = 0;
const FOUND: u8 = 1;

impl RemoteEntry {
    /// Creates an entry. Pass `None` to record that the value does not exist.
    #[must_use]
    pub fn new(value: Option<Vec<u8>>, version: u64) -> Self {
        RemoteEntry { value, version }
    }

    /// Encodes the entry: one byte for its kind, eight for its version, then the value.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, value) = self.value.as_ref().map_or((NOT_FOUND, &[][..]), |value| (FOUND, value));
        let mut bytes = Vec::with_capacity(9 + value.len());
        bytes.push(kind);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(value);
        bytes
    }

    /// Decodes an entry; returns `None` if the bytes are not one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (version, value) = rest.split_first_chunk::<8>()?;
        let value = match *kind {
            NOT_FOUND if value.is_empty() => None,
            FOUND => Some(value.to_vec()),
            _ => return None,
        };
        Some(RemoteEntry { value, version: u64::from_le_bytes(*version) })
    }
}

/// A subscription to the deletions of a [`RemoteCache`].
pub trait InvalidationListener: Send {
    /// Waits for the next invalidation. An error means that the subscription has ended for good.
    fn next(&mut self) -> RemoteFuture<'_, Invalidation>;
}

/// What an [`InvalidationListener`] reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Invalidation {
    /// This key was deleted.
    Key(String),
    /// The listener missed messages, so any key may have been deleted.
    All,
}

/// Encodes values for a [`RemoteCache`] and decodes them again.
pub trait Codec<V>: Send + Sync + 'static {
    /// Encodes a value as bytes.
    fn encode(&self, value: &V) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

    /// Decodes a value from bytes. The cache treats an error as a miss.
    fn decode(&self, bytes: &[u8]) -> Result<V, Box<dyn Error + Send + Sync>>;
}

/// The [`Codec`] for strings and byte vectors: it stores their bytes unchanged.
#[derive(Clone, Copy, Debug)]
pub struct RawCodec;

impl Codec<String> for RawCodec {
    fn encode(&self, value: &String) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(value.as_bytes().to_vec())
    }

    fn decode(&self, bytes: &[u8]) -> Result<String, Box<dyn Error + Send + Sync>> {
        Ok(String::from_utf8(bytes.to_vec())?)
    }
}

impl Codec<Vec<u8>> for RawCodec {
    fn encode(&self, value: &Vec<u8>) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(value.clone())
    }

    fn decode(&self, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        Ok(bytes.to_vec())
    }
}
