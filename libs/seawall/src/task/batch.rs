//! A client that asks a peer for sets of ids, once per set.
#![doc = ""]
#![doc = include_str!("../../docs/batch.md")]

use std::error::Error as StdError;
use std::fmt::{self, Display, Write};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::SharedWorkError;
use super::singleflight::Singleflight;
use crate::fault::{Causes, Classify};
use crate::guard::Guard;

/// The default time limit of one request.
pub const BATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Asks a peer for sets of ids through a guard, once for all callers that ask for the same set at the same time. It is a
/// handle: clones share their state.
pub struct BatchClient<Id, T> {
    inner: Arc<Inner<Id, T>>,
}

type Fetch<Id, T> = dyn Fn(Vec<Id>) -> Fetching<T> + Send + Sync;
type Fetching<T> = Pin<Box<dyn Future<Output = Result<T, SharedWorkError>> + Send>>;

struct Inner<Id, T> {
    flights: Singleflight<String, T>,
    fetch: Arc<Fetch<Id, T>>,
}

impl<Id, T> BatchClient<Id, T>
where
    Id: Ord + Display + Clone + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Creates a client that calls `fetch` through this guard. `fetch` gets the ids sorted and without duplicates. The client
    /// calls it as an idempotent operation, so the guard's retries apply.
    pub fn new<F, Fut, E>(guard: Guard, fetch: F) -> Self
    where
        F: Fn(Vec<Id>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: StdError + Send + Sync + 'static,
        Causes: Classify<T, E>,
    {
        Self::with_timeout(guard, BATCH_TIMEOUT, fetch)
    }

    /// Creates a client like [`new`](BatchClient::new), with this time limit for each request.
    pub fn with_timeout<F, Fut, E>(guard: Guard, timeout: Duration, fetch: F) -> Self
    where
        F: Fn(Vec<Id>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: StdError + Send + Sync + 'static,
        Causes: Classify<T, E>,
    {
        let (fetch, flights) = (Arc::new(fetch), Singleflight::with(timeout, guard.clock().clone()));
        let guarded = move |ids: Vec<Id>| -> Fetching<T> {
            let (guard, fetch) = (guard.clone(), fetch.clone());
            Box::pin(async move {
                let answer = guard.idempotent().call(|_attempt| fetch(ids.clone())).await;
                answer.map_err(SharedWorkError::of)
            })
        };
        BatchClient { inner: Arc::new(Inner { flights, fetch: Arc::new(guarded) }) }
    }

    /// Returns the answer for this set of ids. Order and duplicates do not matter. The client compares ids by their `Display`
    /// text.
    ///
    /// A caller that drops the future stops waiting; the request goes on for the other callers.
    pub async fn get(&self, ids: impl IntoIterator<Item = Id>) -> Result<T, SharedWorkError> {
        let mut ids: Vec<Id> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let key = key_of(&ids);
        let fetch = self.inner.fetch.clone();
        self.inner.flights.share(key, move || fetch(ids)).await
    }
}

/// Returns the key of a set of ids. Its length does not depend on the number of ids.
fn key_of<Id: Display>(ids: &[Id]) -> String {
    // Commas stand between ids, so one within an id is marked: else `a,b` and `c` would be `a` and `b,c`. So is an id without
    // letters: else it would be no id at all.
    let marked = |id: &Id| match id.to_string() {
        empty if empty.is_empty() => r"\0".to_owned(),
        text => text.replace('\\', r"\\").replace(',', r"\,"),
    };
    let mut texts: Vec<String> = ids.iter().map(marked).collect();
    texts.sort_unstable();
    let digest = Sha256::digest(texts.join(",").as_bytes());
    let mut key = String::from("items:");
    for byte in &digest[..16] {
        write!(key, "{byte:02x}").expect("writing to a string never fails");
    }
    key
}

impl<Id, T> Clone for BatchClient<Id, T> {
    fn clone(&self) -> Self {
        BatchClient { inner: self.inner.clone() }
    }
}

impl<Id, T> fmt::Debug for BatchClient<Id, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchClient").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;

    /// ADP-3: the first sixteen bytes of SHA-256 over the sorted ids with commas between them, in hexadecimal.
    #[test]
    fn adp_3_the_key_of_a_set_is_bounded_and_known() {
        // `printf 'a,b,c' | sha256sum`
        assert_eq!(key_of(&["a", "b", "c"]), "items:205830ca5b23bbe39ab510cfddc1dff2");
        assert_eq!(key_of(&["c", "a", "b"]), key_of(&["a", "b", "c"]));
        assert_ne!(key_of(&["a,b", "c"]), key_of(&["a", "b,c"]), "a comma within an id is no border");
        assert_ne!(key_of(&[""]), key_of::<&str>(&[]), "an id without letters is an id");
        assert_ne!(key_of(&[""]), key_of(&[r"\0"]));
        assert_eq!(key_of(&(0..10_000).collect::<Vec<_>>()).len(), "items:".len() + 32);
    }
}
