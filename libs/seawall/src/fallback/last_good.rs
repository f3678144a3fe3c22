//! The last good value, to answer with when there is no new one.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where good answers are kept: `&LastGood`, or an entry of a [`LastGoodMap`].
pub trait GoodAnswers {
    /// What is kept.
    type Value;

    /// Keeps a good answer.
    fn keep(&self, value: &Self::Value);

    /// The last good answer, if there was one.
    fn recall(&self) -> Option<Self::Value>;
}

/// The last good value of something, to answer with when there is no new one.
///
/// Keep one beside the guard; for one value per key there is [`LastGoodMap`]. Clones share the value. Only answers that the
/// call's classifier takes for good are kept: a 500 never overwrites what was good before it.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Guard, fallback::LastGood};
/// let rates = Guard::builder("exchange rates").no_retry().build()?;
/// let last = LastGood::new();
/// let fresh = rates.idempotent().or_last_good(&last).call(|_| async { std::io::Result::Ok(1.08) }).await?;
/// assert!(!fresh.is_fallback());
/// let stale = rates.idempotent().or_last_good(&last).call(|_| async { Err(std::io::Error::other("down")) }).await?;
/// assert!(stale.is_fallback() && *stale == 1.08);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LastGood<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for LastGood<T> {
    fn clone(&self) -> Self {
        LastGood(self.0.clone())
    }
}

impl<T> Default for LastGood<T> {
    fn default() -> Self {
        LastGood(Arc::default())
    }
}

impl<T: Clone> LastGood<T> {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value, if there was one.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        lock(&self.0).clone()
    }

    /// Keeps a value.
    pub fn set(&self, value: T) {
        // The old value is dropped when the lock is released: its drop may take long.
        let _old = lock(&self.0).replace(value);
    }
}

impl<T: Clone> GoodAnswers for &LastGood<T> {
    type Value = T;

    fn keep(&self, value: &T) {
        self.set(value.clone());
    }

    fn recall(&self) -> Option<T> {
        self.get()
    }
}

/// The last good value per key, of a bounded number of keys: when it is full, the key whose value is the oldest goes.
///
/// Clones share the values.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Guard, fallback::LastGoodMap};
/// let prices = Guard::builder("prices").no_retry().build()?;
/// let last = LastGoodMap::new(10_000);
/// let price = prices.idempotent().or_last_good(last.entry("A-7")).call(|_| async { std::io::Result::Ok(499) }).await?;
/// assert_eq!((*price, last.get("A-7"), last.get("B-1")), (499, Some(499), None));
/// # Ok(()) }
/// ```
pub struct LastGoodMap<K, T>(Arc<Shared<K, T>>);

struct Shared<K, T> {
    capacity: usize,
    values: Mutex<Values<K, T>>,
}

/// The values, and their keys in the order in which the values came.
struct Values<K, T> {
    by_key: HashMap<K, (u64, T)>,
    by_age: BTreeMap<u64, K>,
    next: u64,
}

impl<K, T> Clone for LastGoodMap<K, T> {
    fn clone(&self) -> Self {
        LastGoodMap(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone, T: Clone> LastGoodMap<K, T> {
    /// Keeps the values of at most this many keys, and of at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let values = Values { by_key: HashMap::new(), by_age: BTreeMap::new(), next: 0 };
        LastGoodMap(Arc::new(Shared { capacity: capacity.max(1), values: Mutex::new(values) }))
    }

    /// The place of one key, for [`or_last_good`](crate::CallBuilder::or_last_good).
    pub fn entry(&self, key: K) -> LastGoodEntry<'_, K, T> {
        LastGoodEntry { map: self, key }
    }

    /// The last good value of a key, if there was one.
    pub fn get<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        lock(&self.0.values).by_key.get(key).map(|(_, value)| value.clone())
    }

    /// Keeps the value of a key.
    pub fn set(&self, key: K, value: T) {
        let mut values = lock(&self.0.values);
        let number = values.next;
        values.next += 1;
        if let Some((old, _)) = values.by_key.insert(key.clone(), (number, value)) {
            values.by_age.remove(&old);
        }
        values.by_age.insert(number, key);
        if values.by_age.len() > self.0.capacity
            && let Some((_, oldest)) = values.by_age.pop_first()
        {
            values.by_key.remove(&oldest);
        }
    }

    /// The number of keys that have a value.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0.values).by_key.len()
    }

    /// Whether no key has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, T> fmt::Debug for LastGoodMap<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastGoodMap").field("capacity", &self.0.capacity).finish_non_exhaustive()
    }
}

/// The place of one key in a [`LastGoodMap`].
#[derive(Debug)]
pub struct LastGoodEntry<'m, K, T> {
    map: &'m LastGoodMap<K, T>,
    key: K,
}

impl<K: Eq + Hash + Clone, T: Clone> GoodAnswers for LastGoodEntry<'_, K, T> {
    type Value = T;

    fn keep(&self, value: &T) {
        self.map.set(self.key.clone(), value.clone());
    }

    fn recall(&self) -> Option<T> {
        self.map.get(&self.key)
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
