//! The last good value, to answer with when there is no new one.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Tick};

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
pub struct LastGood<T> {
    kept: Arc<Mutex<Option<(Tick, T)>>>,
    limit: AgeLimit,
}

/// How old a value may be, and who says how old it is.
#[derive(Clone, Default, Debug)]
struct AgeLimit {
    max_age: Option<Duration>,
    clock: Clock,
}

impl AgeLimit {
    fn age(&self, since: Tick) -> Duration {
        self.clock.now().since(since)
    }

    fn allows(&self, since: Tick) -> bool {
        self.max_age.is_none_or(|max_age| self.age(since) <= max_age)
    }
}

impl<T> Clone for LastGood<T> {
    fn clone(&self) -> Self {
        LastGood { kept: self.kept.clone(), limit: self.limit.clone() }
    }
}

impl<T> Default for LastGood<T> {
    fn default() -> Self {
        LastGood { kept: Arc::default(), limit: AgeLimit::default() }
    }
}

impl<T: Clone> LastGood<T> {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A value that is older than this is no answer any more. Without it a value is good for as long as there is no newer one.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.limit.max_age = Some(max_age);
        self
    }

    /// Goes by this clock instead of the default one.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.limit.clock = clock;
        self
    }

    /// The value, if there was one and it is not too old.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        let kept = lock(&self.kept);
        kept.as_ref().filter(|(since, _)| self.limit.allows(*since)).map(|(_, value)| value.clone())
    }

    /// How old the value is, whether it is too old or not.
    #[must_use]
    pub fn age(&self) -> Option<Duration> {
        lock(&self.kept).as_ref().map(|(since, _)| self.limit.age(*since))
    }

    /// Keeps a value.
    pub fn set(&self, value: T) {
        // The old value is dropped when the lock is released: its drop may take long.
        let _old = lock(&self.kept).replace((self.limit.clock.now(), value));
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
pub struct LastGoodMap<K, T> {
    shared: Arc<Shared<K, T>>,
    limit: AgeLimit,
}

struct Shared<K, T> {
    capacity: usize,
    values: Mutex<Values<K, T>>,
}

/// The values, and their keys in the order in which the values came.
struct Values<K, T> {
    by_key: HashMap<K, KeyedValue<T>>,
    by_age: BTreeMap<u64, K>,
    next: u64,
}

struct KeyedValue<T> {
    number: u64,
    since: Tick,
    value: T,
}

impl<K, T> Clone for LastGoodMap<K, T> {
    fn clone(&self) -> Self {
        LastGoodMap { shared: self.shared.clone(), limit: self.limit.clone() }
    }
}

impl<K: Eq + Hash + Clone, T: Clone> LastGoodMap<K, T> {
    /// Keeps the values of at most this many keys, and of at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let values = Values { by_key: HashMap::new(), by_age: BTreeMap::new(), next: 0 };
        let shared = Shared { capacity: capacity.max(1), values: Mutex::new(values) };
        LastGoodMap { shared: Arc::new(shared), limit: AgeLimit::default() }
    }

    /// A value that is older than this is no answer any more. Without it a value is good for as long as there is no newer one
    /// and no other key takes its place.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.limit.max_age = Some(max_age);
        self
    }

    /// Goes by this clock instead of the default one.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.limit.clock = clock;
        self
    }

    /// The place of one key, for [`or_last_good`](crate::CallBuilder::or_last_good).
    pub fn entry(&self, key: K) -> LastGoodEntry<'_, K, T> {
        LastGoodEntry { map: self, key }
    }

    /// The last good value of a key, if there was one and it is not too old.
    pub fn get<Q>(&self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let values = lock(&self.shared.values);
        values.by_key.get(key).filter(|kept| self.limit.allows(kept.since)).map(|kept| kept.value.clone())
    }

    /// How old the value of a key is, whether it is too old or not.
    pub fn age<Q>(&self, key: &Q) -> Option<Duration>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        lock(&self.shared.values).by_key.get(key).map(|kept| self.limit.age(kept.since))
    }

    /// Keeps the value of a key.
    pub fn set(&self, key: K, value: T) {
        let since = self.limit.clock.now();
        let mut values = lock(&self.shared.values);
        let number = values.next;
        values.next += 1;
        if let Some(old) = values.by_key.insert(key.clone(), KeyedValue { number, since, value }) {
            values.by_age.remove(&old.number);
        }
        values.by_age.insert(number, key);
        if values.by_age.len() > self.shared.capacity
            && let Some((_, oldest)) = values.by_age.pop_first()
        {
            values.by_key.remove(&oldest);
        }
    }

    /// The number of keys that have a value.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shared.values).by_key.len()
    }

    /// Whether no key has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, T> fmt::Debug for LastGoodMap<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastGoodMap").field("capacity", &self.shared.capacity).finish_non_exhaustive()
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
